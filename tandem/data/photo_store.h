// Photographs for training and evaluation, in memory that process workers share: decoded when they fit, so
// that an epoch decodes nothing; otherwise their paths, and whoever needs one reads its file.
//
// A file that is no readable image is found when it is decoded: up front, or by the worker that meets it. It
// is skipped (in training another takes its place) and told of with its path, or it ends the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/ring.h"
#include "tandem/data/shared_memory.h"
#include "tandem/image/decode.h"
#include "tandem/image/image.h"

namespace tandem {

enum class OnBadImage : std::uint8_t { skip, fail };

// How files are read.
struct PhotoReading {
  std::int64_t max_pixels = 179'000'000;
  // JPEGs are decoded at the smallest scale (1/8, 1/4, 1/2) that has at least three quarters of the rows and
  // columns which are asked for: faster, and not quite the same pixels.
  bool scaled = false;
};

// One file, read and its header understood; Error names the path.
class PhotoFile {
 public:
  PhotoFile(const std::string& path, const PhotoReading& reading);

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  // RGB and upright: all of it, or a box, which comes at a smaller scale where that is asked for and serves
  // to be resized to the sides given.
  Image decode() const;
  Image decode(const PixelBox& box, std::int64_t resized_height, std::int64_t resized_width,
               Image memory = {}) const;

 private:
  std::span<const std::uint8_t> bytes() const;
  LoadOptions options() const;

  std::string path_, bytes_;
  PhotoReading reading_;
  std::int64_t height_ = 0, width_ = 0;
};

// Of the file only what the recipe's draw needs is decoded.
void make_photo_from_file(const std::string& path, const PhotoReading& reading, const PhotoRecipe& recipe,
                          const DrawKey& key, std::uint8_t* out, PhotoScratch& scratch);

// "cut short" of "[decode] folder/cat.jpg: cut short".
std::string reason_without_path(std::string_view text, std::string_view path);

// A view of a store's memory, for those who did not make it too.
class PhotoTable {
 public:
  // Error when the memory holds something else.
  static PhotoTable attach(std::span<const std::byte> memory);

  std::int64_t count() const;
  bool decoded() const;
  PhotoReading reading() const;
  std::int32_t label(std::int64_t sample) const { return labels()[sample]; }
  const std::int32_t* labels() const;
  std::string path(std::int64_t sample) const;
  // Where decoded ones lie in pixels(); of height 0: a bad one.
  const PhotoPlace* places() const;
  const PhotoPlace& place(std::int64_t sample) const { return places()[sample]; }
  const std::uint8_t* pixels() const;
  std::int64_t pixel_bytes() const;
  ImageView photo(std::int64_t sample) const {
    const PhotoPlace& at = place(sample);
    return {pixels() + at.offset, at.height, at.width, 3, 3 * at.width};
  }

 private:
  friend class PhotoStore;
  struct Header;
  explicit PhotoTable(const std::byte* memory) : memory_(memory) {}
  const Header& header() const;

  const std::byte* memory_;
};

// Bytes that this process may still take of the host's memory.
std::int64_t free_host_bytes();

struct PhotoStoreOptions {
  // Photographs of at most so many bytes are decoded; none given: 4 GiB or half of the memory that is free.
  std::optional<std::int64_t> decoded_limit = {};
  OnBadImage on_bad_image = OnBadImage::skip;
  PhotoReading reading = {};
};

class PhotoStore {
 public:
  // A label a file. Error when there is none, or none that can be read.
  PhotoStore(const std::vector<std::filesystem::path>& files, const std::vector<std::int32_t>& labels,
             const PhotoStoreOptions& options = {});
  // Photographs that are in memory already, RGB, with names that stand for their paths.
  PhotoStore(std::span<const Image> photos, std::span<const std::string> names,
             const std::vector<std::int32_t>& labels);

  const PhotoTable& table() const { return table_; }
  const SharedMemory& memory() const { return memory_; }
  OnBadImage on_bad_image() const { return on_bad_image_; }
  // Those found by decoding up front, by sample.
  const std::vector<BadSample>& bad() const { return bad_; }

 private:
  // Takes the memory and fills all of it but the places and the pixels, whose beginnings it returns.
  struct Blank {
    std::byte *places, *pixels;
  };
  Blank lay_out(std::span<const std::string> names, const std::vector<std::int32_t>& labels,
                const PhotoReading& reading, bool decoded, std::int64_t pixel_bytes);

  SharedMemory memory_;
  PhotoTable table_;
  OnBadImage on_bad_image_;
  std::vector<BadSample> bad_;
};

}  // namespace tandem
