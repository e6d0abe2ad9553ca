#include "tandem/data/photo_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/files/read_file.h"
#include "tandem/image/image_decoder.h"
#include "tandem/image/jpeg_frame.h"
#include "tandem/image/ppm_view.h"
#include "tandem/text/utf8.h"

namespace tandem {

struct PhotoTable::Header {
  std::uint64_t magic;
  std::int64_t bytes;  // of the whole store
  std::int64_t count;
  bool decoded;
  PhotoDecodeOptions decode;
  // Byte offsets from the beginning. path_ends[i] is the end of the path of sample i, relative to the paths.
  std::int64_t labels, locations, path_ends, paths, pixels;
};

namespace {

constexpr std::uint64_t magic_number = 0x50686F746F730001ULL;
constexpr std::int64_t page = 4096, default_limit = std::int64_t{4} << 30;
constexpr std::uint64_t max_file_bytes = max_image_file_bytes;

constexpr std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t decoded_limit(const PhotoStoreOptions& options) {
  return options.max_decoded_bytes ? *options.max_decoded_bytes
                                   : std::min(default_limit, free_host_bytes() / 2);
}

// Image files, without their headers, are smaller than their pixels: when the files exceed the limit, the
// pixels do too, and no file needs to be read.
bool may_fit(const std::vector<std::filesystem::path>& files, std::int64_t limit) {
  constexpr std::int64_t header = 1024;
  std::int64_t total = 0;
  for (const std::filesystem::path& file : files) {
    if (const std::optional<std::uint64_t> bytes = bytes_in_file(file))
      total += std::max<std::int64_t>(
          static_cast<std::int64_t>(std::min<std::uint64_t>(*bytes, max_file_bytes)) - header, 0);
    if (total > limit) return false;
  }
  return true;
}

// Places photographs of known sizes one after another; returns their total bytes.
std::int64_t assign_offsets(std::vector<PhotoLocation>& locations) {
  std::int64_t bytes = 0;
  for (PhotoLocation& location : locations) {
    location.offset = bytes;
    bytes += rounded(3 * location.height * location.width, 16);
  }
  return bytes;
}

// The sizes of all photographs, or why a file could not be read.
struct Survey {
  std::vector<PhotoLocation> locations;
  std::vector<BadSample> bad;  // per file; an empty reason: readable
  std::int64_t pixel_bytes = 0;
};

// Calls f(sample) in parallel for every readable file; an Error makes it a bad one.
template <class F>
void try_all(Survey& survey, const std::vector<std::filesystem::path>& files, F&& f) {
  parallel_tasks(std::ssize(survey.locations), 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      const auto sample = static_cast<std::size_t>(i);
      if (!survey.bad[sample].reason.empty()) return;
      try {
        f(sample);
      } catch (const Error& error) {
        survey.bad[sample] = bad_sample(error, files[sample].string(), static_cast<std::int32_t>(i));
      }
    };
  });
}

Survey survey_of(const std::vector<std::filesystem::path>& files, const PhotoDecodeOptions& decode) {
  Survey survey{.locations = std::vector<PhotoLocation>(files.size()),
                .bad = std::vector<BadSample>(files.size())};
  try_all(survey, files, [&](std::size_t sample) {
    const PhotoFile file(files[sample].string(), decode);
    survey.locations[sample] = {.height = file.height(), .width = file.width()};
  });
  survey.pixel_bytes = assign_offsets(survey.locations);
  return survey;
}

}  // namespace

PhotoFile::PhotoFile(const std::string& path, const PhotoDecodeOptions& decode)
    : path_(path), packed_(open_packed_file("decode", path)), decode_options_(decode) {
  if (!packed_) bytes_ = read_file("decode", path, max_file_bytes);
  pixels_ = view_ppm(bytes(), decode.max_pixels);
  if (pixels_) {
    height_ = pixels_->height;
    width_ = pixels_->width;
    return;
  }
  // A confined decoder is there so that this process parses nothing of a file.
  const std::optional<ImageInfo> common =
      decode.hardware && image_decoder() == nullptr ? read_common_jpeg(bytes(), options()) : std::nullopt;
  is_common_jpeg_ = common.has_value();
  const ImageInfo info = common ? *common : read_image_info(bytes(), path_, options());
  height_ = info.height;
  width_ = info.width;
}

std::span<const std::uint8_t> PhotoFile::bytes() const {
  const std::string_view all = packed_ ? packed_->bytes : bytes_;
  return {reinterpret_cast<const std::uint8_t*>(all.data()), all.size()};
}

LoadOptions load_options(const PhotoDecodeOptions& decode) {
  return {.max_pixels = decode.max_pixels, .rgb = true, .plain_chroma = decode.hardware};
}

LoadOptions PhotoFile::options() const {
  return load_options(decode_options_);
}

Image PhotoFile::decode() const {
  if (pixels_) return copy(*pixels_);
  return decode_image(bytes(), path_, options());
}

Image PhotoFile::decode(const PixelBox& box, std::int64_t resized_height, std::int64_t resized_width,
                        Image memory) const {
  if (pixels_) return copy(crop(*pixels_, box));
  const auto min_side = [&](std::int64_t side) { return decode_options_.scaled ? (3 * side + 3) / 4 : 0; };
  return decode_scaled(bytes(), path_, box, min_side(resized_height), min_side(resized_width), options(),
                       std::move(memory));
}

void read_photo(const std::string& path, const PhotoDecodeOptions& decode, const PhotoRecipe& recipe,
                const RandomKey& key, std::uint8_t* out, PhotoScratch& scratch) {
  read_photo(PhotoFile(path, decode), recipe, key, out, scratch);
}

void read_photo(const PhotoFile& file, const PhotoRecipe& recipe, const RandomKey& key, std::uint8_t* out,
                PhotoScratch& scratch) {
  const detail::PhotoArguments arguments = detail::sample_photo(recipe, file.height(), file.width(), key);
  if (file.pixels()) return transform_photo(recipe, arguments, *file.pixels(), out, scratch);
  scratch.box =
      file.decode(arguments.box, arguments.resized_height, arguments.resized_width, std::move(scratch.box));
  transform_photo_box(recipe, arguments, scratch.box, out, scratch);
}

std::string reason_without_path(std::string_view text, std::string_view path) {
  const std::string named = fmt::format("] {}: ", path);
  const std::size_t at = text.find(named);
  const bool first = text.starts_with('[') && at != text.npos && at == text.find(']');
  return std::string(first ? text.substr(at + named.size()) : text);
}

BadSample bad_sample(const Error& error, std::string_view path, std::int32_t sample) {
  return {sample, reason_without_path(error.what(), path), skip_kind(error)};
}

PhotoTable PhotoTable::attach(std::span<const std::byte> memory) {
  static_assert(std::is_trivially_copyable_v<Header>);
  const PhotoTable table(memory.data());
  check(memory.size() >= sizeof(Header) && table.header().magic == magic_number + sizeof(Header) &&
            table.header().bytes <= static_cast<std::int64_t>(memory.size()),
        "[worker] expected photographs of this version of tandem, got {} bytes of something else",
        memory.size());
  return table;
}

const PhotoTable::Header& PhotoTable::header() const {
  return *std::launder(reinterpret_cast<const Header*>(memory_));
}
std::int64_t PhotoTable::count() const {
  return header().count;
}
bool PhotoTable::decoded() const {
  return header().decoded;
}
PhotoDecodeOptions PhotoTable::decode_options() const {
  return header().decode;
}
const std::int32_t* PhotoTable::labels() const {
  return reinterpret_cast<const std::int32_t*>(memory_ + header().labels);
}
const PhotoLocation* PhotoTable::locations() const {
  return reinterpret_cast<const PhotoLocation*>(memory_ + header().locations);
}
const std::uint8_t* PhotoTable::pixels() const {
  return reinterpret_cast<const std::uint8_t*>(memory_ + header().pixels);
}
std::int64_t PhotoTable::pixel_bytes() const {
  return header().bytes - header().pixels;
}
std::string PhotoTable::path(std::int64_t sample) const {
  const auto* ends = reinterpret_cast<const std::int64_t*>(memory_ + header().path_ends);
  const std::int64_t begin = sample == 0 ? 0 : ends[sample - 1];
  return {reinterpret_cast<const char*>(memory_ + header().paths) + begin,
          static_cast<std::size_t>(ends[sample] - begin)};
}

PhotoStore::Regions PhotoStore::allocate(std::span<const std::string> names,
                                         const std::vector<std::int32_t>& labels,
                                         const PhotoDecodeOptions& decode, bool decoded,
                                         std::int64_t pixel_bytes) {
  const auto count = static_cast<std::int64_t>(names.size());
  std::vector<std::int64_t> path_ends;
  std::string paths;
  for (const std::string& name : names) {
    paths += name;
    path_ends.push_back(static_cast<std::int64_t>(paths.size()));
  }
  PhotoTable::Header header{.magic = magic_number + sizeof(PhotoTable::Header),
                            .count = count,
                            .decoded = decoded,
                            .decode = decode};
  const std::int64_t location_count = decoded ? count : 0;
  header.labels = rounded(sizeof(header), 64);
  header.locations = rounded(header.labels + 4 * count, 64);
  header.path_ends = header.locations + location_count * static_cast<std::int64_t>(sizeof(PhotoLocation));
  header.paths = header.path_ends + 8 * count;
  header.pixels = rounded(header.paths + static_cast<std::int64_t>(paths.size()), page);
  header.bytes = header.pixels + (decoded ? pixel_bytes : 0);

  memory_ = SharedMemory(header.bytes, "the photo store", "lower max_decoded_bytes");
  std::byte* const to = memory_.data();
  std::memcpy(to, &header, sizeof(header));
  table_ = PhotoTable::attach(memory_.bytes());
  std::memcpy(to + header.labels, labels.data(), 4 * labels.size());
  std::memcpy(to + header.path_ends, path_ends.data(), 8 * path_ends.size());
  std::memcpy(to + header.paths, paths.data(), paths.size());
  return {to + header.locations, to + header.pixels};
}

PhotoStore::PhotoStore(std::span<const Image> photos, std::span<const std::string> names,
                       const std::vector<std::int32_t>& labels)
    : table_(nullptr), on_bad_image_(OnBadImage::fail) {
  expect(!photos.empty() && photos.size() == labels.size() && photos.size() == names.size());
  std::vector<PhotoLocation> locations;
  for (const Image& photo : photos) {
    expect(photo.channels == 3 && photo.height > 0 && photo.width > 0);
    locations.push_back({.height = photo.height, .width = photo.width});
  }
  const std::int64_t pixel_bytes = assign_offsets(locations);
  const Regions regions = allocate(names, labels, {}, true, pixel_bytes);
  std::memcpy(regions.locations, locations.data(), locations.size() * sizeof(PhotoLocation));
  for (std::size_t i = 0; i < photos.size(); ++i)
    std::memcpy(regions.pixels + locations[i].offset, photos[i].pixels.data(), photos[i].pixels.size());
}

PhotoStore::PhotoStore(const PhotoStore& decoded, std::span<const std::int64_t> samples)
    : table_(nullptr), on_bad_image_(decoded.on_bad_image_) {
  const PhotoTable& from = decoded.table();
  expect(!samples.empty() && from.decoded());
  std::vector<PhotoLocation> locations;
  std::vector<std::string> names;
  std::vector<std::int32_t> labels;
  for (const std::int64_t sample : samples) {
    locations.push_back(from.location(sample));
    names.push_back(from.path(sample));
    labels.push_back(from.label(sample));
    for (const BadSample& bad : decoded.bad_)
      if (bad.sample == sample)
        bad_.push_back({static_cast<std::int32_t>(labels.size()) - 1, bad.reason, bad.kind});
  }
  const std::int64_t pixel_bytes = assign_offsets(locations);
  const Regions regions = allocate(names, labels, from.decode_options(), true, pixel_bytes);
  std::memcpy(regions.locations, locations.data(), locations.size() * sizeof(PhotoLocation));
  for (std::size_t i = 0; i < samples.size(); ++i)
    std::memcpy(regions.pixels + locations[i].offset, from.photo(samples[i]).pixels,
                static_cast<std::size_t>(3 * locations[i].height * locations[i].width));
}

PhotoStore::PhotoStore(const std::vector<std::filesystem::path>& files,
                       const std::vector<std::int32_t>& labels, const PhotoStoreOptions& options)
    : table_(nullptr), on_bad_image_(options.on_bad_image) {
  expect(files.size() == labels.size());
  check(!files.empty() && files.size() <= std::numeric_limits<std::int32_t>::max(),
        "[photos] expected 1 to 2147483647 photographs, got {}", files.size());
  check(!options.decode.scaled || !options.decode.hardware,
        "[photos] expected scaled or hardware decoding, got both");
  const std::int64_t limit = decoded_limit(options);
  Survey survey;
  bool decoded = may_fit(files, limit);
  if (decoded) survey = survey_of(files, options.decode);
  decoded = decoded && survey.pixel_bytes <= limit;

  std::vector<std::string> names;
  names.reserve(files.size());
  for (const std::filesystem::path& file : files) names.push_back(file.string());
  const Regions regions = allocate(names, labels, options.decode, decoded, survey.pixel_bytes);
  if (!decoded) return;

  try_all(survey, files, [&](std::size_t sample) {
    const PhotoLocation& location = survey.locations[sample];
    const Image photo = PhotoFile(files[sample].string(), options.decode).decode();
    check(photo.height == location.height && photo.width == location.width,
          "[decode] {}: the file has changed", files[sample].string());
    std::memcpy(regions.pixels + location.offset, photo.pixels.data(), photo.pixels.size());
  });
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (survey.bad[i].reason.empty()) continue;
    survey.locations[i].height = 0;
    bad_.push_back(survey.bad[i]);
    check(on_bad_image_ == OnBadImage::skip, "[photos] {}: {}", one_line(files[i].string()),
          bad_.back().reason);
  }
  check(bad_.size() < files.size(),
        "[photos] expected photographs that can be read, got none in {} files, the first {}: {}",
        files.size(), one_line(files[0].string()), bad_.empty() ? "" : bad_[0].reason);
  std::memcpy(regions.locations, survey.locations.data(), survey.locations.size() * sizeof(PhotoLocation));
}

}  // namespace tandem
