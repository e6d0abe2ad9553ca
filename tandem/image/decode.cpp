#include "tandem/image/decode.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"
#include "tandem/image/image_decoder.h"

namespace tandem {
namespace {

constexpr size_t signature_bytes = 18;  // enough to recognize every format

using Bytes = std::span<const uint8_t>;

bool has_at(Bytes bytes, size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

bool begins(Bytes bytes, std::string_view text) {
  return has_at(bytes, 0, text);
}

// A text may begin with "BM", so the size of the second header must be a known one too.
bool is_bmp(Bytes bytes) {
  constexpr uint8_t header_sizes[] = {12, 40, 52, 56, 64, 108, 124};
  return begins(bytes, "BM") && bytes.size() >= signature_bytes && bytes[15] == 0 && bytes[16] == 0 &&
         bytes[17] == 0 && std::ranges::find(header_sizes, bytes[14]) != std::end(header_sizes);
}

bool is_pnm(Bytes bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && std::strchr("123456", bytes[1]) != nullptr &&
         bytes[1] != 0 && std::strchr(" \t\r\n#", bytes[2]) != nullptr && bytes[2] != 0;
}

bool is_tiff(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  return begins(bytes, "II*\0"sv) || begins(bytes, "MM\0*"sv) || begins(bytes, "II+\0"sv) ||
         begins(bytes, "MM\0+"sv);
}

// The brand follows the length and name of the first box.
bool has_brand(Bytes bytes, std::initializer_list<std::string_view> brands) {
  return has_at(bytes, 4, "ftyp") &&
         std::ranges::any_of(brands, [&](std::string_view brand) { return has_at(bytes, 8, brand); });
}

bool always() {
  return true;
}
bool never() {
  return false;
}

struct Format {
  std::string_view name;
  bool (*matches)(Bytes bytes);
  bool (*available)();
  StoredInfo (*info)(const EncodedImage&) = nullptr;
  Image (*decode)(const EncodedImage&) = nullptr;
};

constexpr Format formats[] = {
    {"JPEG", [](Bytes bytes) { return begins(bytes, "\xFF\xD8\xFF"); }, always, read_jpeg_info, decode_jpeg},
    {"PNG", [](Bytes bytes) { return begins(bytes, "\x89PNG"); }, always, read_png_info, decode_png},
    {"WebP", [](Bytes bytes) { return begins(bytes, "RIFF") && has_at(bytes, 8, "WEBP"); }, has_webp,
     read_webp_info, decode_webp},
    {"BMP", is_bmp, always, read_bmp_info, decode_bmp},
    {"PNM", is_pnm, always, read_pnm_info, decode_pnm},
    {"TIFF", is_tiff, has_tiff, read_tiff_info, decode_tiff},
    {"HEIC",
     [](Bytes bytes) {
       return has_brand(bytes, {"heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1"});
     },
     has_heif, read_heif_info, decode_heif},
    // The same container with another codec, often named .heic too.
    {"AVIF",
     [](Bytes bytes) {
       return has_brand(bytes, {"avif", "avis"});
     },
     never},
};

// The format of a file that begins with these bytes.
const Format& recognize(Bytes bytes, std::string_view name) {
  if (bytes.empty())
    throw DecodeError(SkipKind::damaged, fmt::format("[decode] {}: the file is empty", name));
  const auto found =
      std::ranges::find_if(formats, [&](const Format& format) { return format.matches(bytes); });
  if (found == std::end(formats))
    throw DecodeError(
        SkipKind::damaged,
        fmt::format(
            "[decode] {}: not an image of a known format (JPEG, PNG, WebP, BMP, PBM, PGM, PPM, TIFF, HEIC)",
            name));
  if (found->decode == nullptr) fail_no_decoder({bytes, name, 0}, found->name);
  return *found;
}

// Calls f(); what a reader rejects is a damaged file.
template <class F>
auto decoding(const F& f) try {
  return f();
} catch (const DecodeError&) {
  throw;
} catch (const Error& error) {
  throw DecodeError(SkipKind::damaged, error.what());
}

EncodedImage to_encoded(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  return {bytes, name, options.max_pixels, options.rgb, options.plain_chroma};
}

std::shared_ptr<ImageDecoder>& other_decoder() {
  static std::shared_ptr<ImageDecoder> decoder;
  return decoder;
}

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, std::string_view name)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), name_(name) {
    check(descriptor_ >= 0 || errno != ENOENT, "[decode] {}: no such file", name_);
    check(descriptor_ >= 0, "[decode] {}: cannot be opened: {}", name_, std::strerror(errno));
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(descriptor_); }

  struct stat status() const {
    struct stat result {};
    if (fstat(descriptor_, &result) != 0)
      fail("[decode] {}: cannot be read: {}", name_, std::strerror(errno));
    return result;
  }

  // Appends up to `max_bytes` bytes; fewer only at the end of the file.
  void append_to(std::vector<uint8_t>& bytes, size_t max_bytes) const {
    size_t size = bytes.size();
    const size_t end = size + max_bytes;
    bytes.resize(end);
    while (size < end) {
      const ssize_t got = read(descriptor_, bytes.data() + size, end - size);
      if (got < 0 && errno == EINTR) continue;
      check(got >= 0, "[decode] {}: cannot be read: {}", name_, std::strerror(errno));
      if (got == 0) break;
      size += size_t(got);
    }
    bytes.resize(size);
  }

 private:
  int descriptor_;
  std::string_view name_;
};

}  // namespace

void check_size(const EncodedImage& file, int64_t width, int64_t height) {
  check(width > 0 && height > 0, "[decode] {}: expected at least one pixel, the header says {}x{}", file.name,
        width, height);
  // Both sides are below 2^32 in every format, so the product fits 64 unsigned bits. The limit is clamped, so
  // that the readers can multiply the number of pixels by a small factor without overflow.
  const uint64_t pixels = uint64_t(width) * uint64_t(height);
  const int64_t limit = std::clamp<int64_t>(file.max_pixels, 0, int64_t(1) << 48);
  if (pixels > uint64_t(limit))
    throw DecodeError(SkipKind::too_large,
                      fmt::format("[decode] {}: {}x{} is {} pixels, the limit is {} (--max-pixels raises it)",
                                  file.name, width, height, pixels, limit));
}

static void check_bytes(const EncodedImage& file, int64_t bytes, std::string_view what,
                        std::string_view unit) {
  constexpr int64_t bytes_per_pixel = 5, min_limit = int64_t(512) << 20, megabyte = 1'000'000;
  const int64_t limit =
      std::max(std::clamp<int64_t>(file.max_pixels, 0, int64_t(1) << 48) * bytes_per_pixel, min_limit);
  if (bytes > limit)
    throw DecodeError(SkipKind::too_large,
                      fmt::format("[decode] {}: {} {} {}, the limit is {} (--max-pixels raises it)",
                                  file.name, what, bytes / megabyte, unit, limit / megabyte));
}

void check_memory(const EncodedImage& file, int64_t bytes) {
  check_bytes(file, bytes, "decoding takes", "MB of memory");
}

void check_unpacked(const EncodedImage& file, int64_t bytes) {
  check_bytes(file, bytes, "its pixels unpack to", "MB");
}

void fail_no_decoder(const EncodedImage& file, std::string_view format, std::string_view where) {
  throw DecodeError(SkipKind::no_decoder,
                    fmt::format("[decode] {}: no decoder for {} {}", file.name, format, where));
}

bool can_decode(std::string_view format) {
  const auto found = std::ranges::find(formats, format, &Format::name);
  check(found != std::end(formats), "[decode] expected the name of an image format, got '{}'", format);
  return found->available();
}

// In place: the write position never passes the read position.
void blend_over_white(const uint8_t* in, int64_t count, int channels, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, in += channels + 1) {
    const uint8_t alpha = in[channels];
    for (int c = 0; c < channels; ++c) *out++ = over_white(in[c], alpha);
  }
}

void blend_over_white(std::vector<uint8_t>& pixels, int channels) {
  const auto count = int64_t(pixels.size()) / (channels + 1);
  blend_over_white(pixels.data(), count, channels, pixels.data());
  pixels.resize(size_t(count * channels));
}

void set_image_decoder(std::shared_ptr<ImageDecoder> decoder) {
  other_decoder() = std::move(decoder);
}

const ImageDecoder* image_decoder() {
  return other_decoder().get();
}

Image decode_image(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  const Format& format = recognize(bytes, name);
  if (ImageDecoder* const other = other_decoder().get()) return other->decode_image(bytes, name, options);
  Image image = decoding([&] { return format.decode(to_encoded(bytes, name, options)); });
  if (options.rgb && image.channels == 1) return to_rgb(image);
  return image;  // not as a part of a conditional expression, which would copy it
}

ImageInfo read_image_info(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  const Format& format = recognize(bytes, name);
  if (ImageDecoder* const other = other_decoder().get()) return other->read_image_info(bytes, name, options);
  StoredInfo info = decoding([&] { return format.info(to_encoded(bytes, name, options)); });
  if (swaps_axes(info.orientation)) std::swap(info.height, info.width);
  return {info.height, info.width, options.rgb ? 3 : info.channels};
}

Image decode_region(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    const LoadOptions& options) {
  return decode_scaled(bytes, name, box, 0, 0, options);
}

Image decode_scaled(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    int64_t min_height, int64_t min_width, const LoadOptions& options, Image memory) {
  const Format& format = recognize(bytes, name);
  if (ImageDecoder* const other = other_decoder().get())
    return other->decode_scaled(bytes, name, box, min_height, min_width, options);
  if (format.decode == decode_jpeg)
    return decoding([&] {
      return decode_jpeg_box(to_encoded(bytes, name, options), box, min_height, min_width, std::move(memory));
    });
  Image whole = decode_image(bytes, name, options);
  const bool is_part = box != PixelBox{0, 0, whole.width, whole.height};
  return is_part ? copy(crop(whole, box)) : std::move(whole);
}

Image load_image(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string name = path.string();
  const OpenFile file(path, name);
  const struct stat status = file.status();
  check(!S_ISDIR(status.st_mode), "[decode] {}: expected an image file, got a folder", name);
  const auto check_length = [&](int64_t size) {
    if (size > max_image_file_bytes)
      throw DecodeError(
          SkipKind::too_large,
          fmt::format("[decode] {}: expected at most {} bytes in an image file, got {}", name,
                      max_image_file_bytes, S_ISREG(status.st_mode) ? std::to_string(size) : "more"));
  };
  if (S_ISREG(status.st_mode)) check_length(status.st_size);

  // The first bytes are checked first, so that a video or an endless device is not read to its end.
  std::vector<uint8_t> bytes;
  file.append_to(bytes, signature_bytes);
  recognize(bytes, name);
  // A regular file is read in one call; a pipe has no size and is read in chunks.
  if (S_ISREG(status.st_mode) && status.st_size > int64_t(bytes.size()))
    file.append_to(bytes, size_t(status.st_size) - bytes.size());
  constexpr size_t chunk = size_t(1) << 18;
  for (size_t before = 0; before != bytes.size();) {
    check_length(int64_t(bytes.size()));
    before = bytes.size();
    file.append_to(bytes, chunk);
  }
  return decode_image(bytes, name, options);
}

}  // namespace tandem
