// Photographs for training and evaluation, in memory that process workers share: decoded when they fit, so
// that an epoch decodes nothing; otherwise only their paths, and a worker reads the file each time.
//
// An unreadable file is found when it is decoded: up front, or by a worker. Depending on OnBadImage it is
// skipped (in training another photograph replaces it) and reported with its path, or it ends the run.
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
#include "tandem/data/photo_options.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/files/packed_path.h"
#include "tandem/image/decode.h"
#include "tandem/image/image.h"
#include "tandem/process/shared_memory.h"

namespace tandem {

// What the options mean for one file.
LoadOptions load_options(const PhotoDecodeOptions& decode);

// The bytes of one image file, which may be in a packed set, and its size from the header. An Error names the
// path.
class PhotoFile {
 public:
  PhotoFile(const std::string& path, const PhotoDecodeOptions& decode);
  PhotoFile(const PhotoFile&) = delete;
  PhotoFile& operator=(const PhotoFile&) = delete;

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  // The pixels of a file that has them uncompressed, as packed sets have; they need not be decoded.
  const std::optional<ImageView>& pixels() const { return pixels_; }
  std::span<const std::uint8_t> bytes() const;
  // With `hardware`: whether a JPEG engine gives the same pixels (jpeg_frame.h).
  bool is_common_jpeg() const { return is_common_jpeg_; }
  // RGB, with the EXIF orientation applied: the whole image, or a box. With `scaled`, a box that will be
  // resized to the given sides may come at a smaller scale. `memory` is reused for the result.
  Image decode() const;
  Image decode(const PixelBox& box, std::int64_t resized_height, std::int64_t resized_width,
               Image memory = {}) const;

 private:
  LoadOptions options() const;

  std::string path_;
  std::optional<PackedFile> packed_;
  std::string bytes_;  // empty for a packed one
  PhotoDecodeOptions decode_options_;
  std::optional<ImageView> pixels_;
  bool is_common_jpeg_ = false;
  std::int64_t height_ = 0, width_ = 0;
};

// Reads a file and transforms it with the random arguments of `key`. Decodes only the box the recipe needs.
void read_photo(const std::string& path, const PhotoDecodeOptions& decode, const PhotoRecipe& recipe,
                const RandomKey& key, std::uint8_t* out, PhotoScratch& scratch);
void read_photo(const PhotoFile& file, const PhotoRecipe& recipe, const RandomKey& key, std::uint8_t* out,
                PhotoScratch& scratch);

// "cut short" from "[decode] folder/cat.jpg: cut short".
std::string reason_without_path(std::string_view text, std::string_view path);
// Why the photograph `sample` at `path` cannot be read.
BadSample bad_sample(const Error& error, std::string_view path, std::int32_t sample = -1);

// A view of a store's memory, also in another process.
class PhotoTable {
 public:
  // Error when the memory holds something else.
  static PhotoTable attach(std::span<const std::byte> memory);

  std::int64_t count() const;
  bool decoded() const;
  PhotoDecodeOptions decode_options() const;
  std::int32_t label(std::int64_t sample) const { return labels()[sample]; }
  const std::int32_t* labels() const;
  std::string path(std::int64_t sample) const;
  // The offsets and sizes of decoded photographs in pixels(); height 0 marks an unreadable one.
  const PhotoLocation* locations() const;
  const PhotoLocation& location(std::int64_t sample) const { return locations()[sample]; }
  const std::uint8_t* pixels() const;
  std::int64_t pixel_bytes() const;
  ImageView photo(std::int64_t sample) const {
    const PhotoLocation& at = location(sample);
    return {pixels() + at.offset, at.height, at.width, 3, 3 * at.width};
  }

 private:
  friend class PhotoStore;
  struct Header;
  explicit PhotoTable(const std::byte* memory) : memory_(memory) {}
  const Header& header() const;

  const std::byte* memory_;
};

class PhotoStore {
 public:
  // One label per file. Error when there are no files, or none that can be read.
  PhotoStore(const std::vector<std::filesystem::path>& files, const std::vector<std::int32_t>& labels,
             const PhotoStoreOptions& options = {});
  // RGB photographs that are in memory already; their names are used as paths.
  PhotoStore(std::span<const Image> photos, std::span<const std::string> names,
             const std::vector<std::int32_t>& labels);
  // Copies of decoded photographs of another store.
  PhotoStore(const PhotoStore& decoded, std::span<const std::int64_t> samples);

  const PhotoTable& table() const { return table_; }
  const SharedMemory& memory() const { return memory_; }
  OnBadImage on_bad_image() const { return on_bad_image_; }
  // Photographs that could not be decoded up front, by sample.
  const std::vector<BadSample>& bad() const { return bad_; }

 private:
  // Allocates the memory and fills all of it but the regions it returns.
  struct Regions {
    std::byte* locations;
    std::byte* pixels;
  };
  Regions allocate(std::span<const std::string> names, const std::vector<std::int32_t>& labels,
                   const PhotoDecodeOptions& decode, bool decoded, std::int64_t pixel_bytes);

  SharedMemory memory_;
  PhotoTable table_;
  OnBadImage on_bad_image_;
  std::vector<BadSample> bad_;
};

}  // namespace tandem
