#include "tandem/data/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/photo_store.h"
#include "tandem/files/packed_set.h"
#include "tandem/files/read_file.h"
#include "tandem/image/ppm_view.h"
#include "tandem/image/resize.h"
#include "tandem/image/save_image.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string name;  // in the set
  fs::path file;

  bool operator<(const Source& other) const { return name < other.name; }
};

// What a set stores of one file.
struct Packed {
  std::string bytes;
  std::uint64_t bytes_before = 0;
  BadSample bad;
};

std::vector<Source> find_sources(const fs::path& from, std::vector<fs::path> files) {
  std::vector<Source> sources;
  for (fs::path& file : files) {  // FROM/CLASS/NAME
    std::string name = file.native().substr(from.native().size());
    name.erase(0, name.find_first_not_of('/'));
    sources.push_back({std::move(name), std::move(file)});
  }
  std::ranges::sort(sources, {}, &Source::name);
  return sources;
}

// The size with that shorter side, as torchvision's Resize has it; never a larger one.
Image reduced(Image image, std::int64_t side) {
  const std::int64_t height = image.height, width = image.width;
  if (std::min(height, width) <= side) return image;
  return resize(image, height <= width ? side : side * height / width,
                width <= height ? side : side * width / height);
}

std::string encoded(const std::string& path, const std::string& file, const PackOptions& options) {
  const PhotoFile photo(path, {.max_pixels = options.max_pixels});
  const bool is_small = std::min(photo.height(), photo.width()) <= options.side;
  if (options.store == PackStore::jpeg && is_small) {
    photo.decode();  // to know whether it can be
    return file;
  }
  const Image image = reduced(photo.decode(), options.side);
  if (options.store == PackStore::pixels) return encode_ppm(image);
  const std::vector<std::uint8_t> jpeg = encode_jpeg(image, options.quality);
  return {jpeg.begin(), jpeg.end()};
}

Packed pack_file(const fs::path& path, const PackOptions& options) {
  Packed packed;
  try {
    packed.bytes = read_file("decode", path, max_image_file_bytes);
    packed.bytes_before = packed.bytes.size();
    if (options.store != PackStore::original) packed.bytes = encoded(path.string(), packed.bytes, options);
  } catch (const Error& error) {
    packed.bad = bad_sample(error, path.string());
  }
  return packed;
}

std::string options_json(const PackOptions& options) {
  nlohmann::ordered_json json{{"store", name_of(options.store)}};
  if (options.store != PackStore::original) json["side"] = options.side;
  if (options.store == PackStore::jpeg) json["quality"] = options.quality;
  return json.dump();
}

}  // namespace

const char* name_of(PackStore store) {
  return store == PackStore::pixels ? "pixels" : store == PackStore::jpeg ? "jpeg" : "original";
}

PackCounts pack_images(const fs::path& from, const fs::path& to, const PackOptions& options) {
  check(options.side >= 1 && options.quality >= 1 && options.quality <= 100,
        "[pack] expected a side of at least 1 and a quality from 1 to 100, got {} and {}", options.side,
        options.quality);
  check(to.extension() == packed_set_ending, "[pack] {}: expected a name that ends in {}",
        one_line(to.string()), packed_set_ending);
  std::error_code ignored;
  check(options.overwrite || !fs::exists(fs::symlink_status(to, ignored)), "[pack] {}: the file exists",
        one_line(to.string()));
  check(is_folder(from), "[pack] {}: expected a folder of images", one_line(from.string()));
  ImageList images = list_images(from);
  const std::vector<Source> sources = find_sources(from, std::move(images.files));
  PackCounts counts{.images = std::ssize(sources), .skipped = std::move(images.skipped)};

  PackedWriter writer("pack", to);
  std::vector<Packed> block(static_cast<std::size_t>(4 * thread_count()));
  for (std::size_t begin = 0; begin < sources.size(); begin += block.size()) {
    const std::size_t count = std::min(block.size(), sources.size() - begin);
    parallel_tasks(static_cast<std::int64_t>(count), 1, [&] {
      return [&](std::int64_t i, std::int64_t) {
        const auto at = static_cast<std::size_t>(i);
        block[at] = pack_file(sources[begin + at].file, options);
      };
    });
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [bytes, bytes_before, bad] = block[i];
      writer.add(sources[begin + i].name, bytes);
      counts.bytes_before += bytes_before;
      if (!bad.reason.empty())
        counts.unreadable.push_back({.sample = static_cast<std::int32_t>(begin + i),
                                     .name = sources[begin + i].file.string(),
                                     .reason = bad.reason,
                                     .kind = bad.kind});
    }
    if (options.on_progress) options.on_progress(static_cast<std::int64_t>(begin + count), counts.images);
  }
  if (std::ssize(counts.unreadable) == counts.images)
    fail("[pack] {}: expected images that can be read, got none in {} files, the first {}: {}",
         one_line(from.string()), counts.images, one_line(counts.unreadable[0].name),
         counts.unreadable[0].reason);
  writer.finish(options_json(options));
  counts.bytes = writer.bytes();
  return counts;
}

}  // namespace tandem
