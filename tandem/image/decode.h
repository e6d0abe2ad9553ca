// Reading image files. The format is told by the content, never by the name: JPEG, PNG, BMP, PPM, PGM, and
// WebP where the build has libwebp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

struct LoadOptions {
  int64_t max_pixels = 179'000'000;  // checked against the header, before memory is taken
  bool rgb = false;                  // three channels always: a grey file repeats its one
};

// Whether this build reads WebP; where it does not, such a file is an Error that says so.
bool reads_webp();

// A grey file gives one channel, any other RGB. EXIF orientation is applied, alpha is blended over white, 16
// bits are rounded to 8, CMYK becomes RGB. A file that is missing, cut short, damaged, too large or no image
// is an Error of one line that names it.
Image load_image(const std::filesystem::path& path, const LoadOptions& options = {});

// The same for bytes in memory; `name` is what errors call them.
Image decode_image(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options = {});

// What decode_image would give, from the header alone.
struct ImageInfo {
  int64_t height = 0, width = 0;  // upright
  int channels = 0;

  bool operator==(const ImageInfo&) const = default;
};

ImageInfo read_image_info(std::span<const uint8_t> bytes, std::string_view name,
                          const LoadOptions& options = {});

// Exactly the pixels of decode_image inside the box (in upright coordinates; it must lie within the image).
// Of a JPEG only the rows and columns needed are converted. Damage below the box's last row is not seen
// there, except that a file without an end is always refused; other formats are read whole.
Image decode_region(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    const LoadOptions& options = {});

// The box, smaller where that is cheap: a JPEG is decoded at the smallest of 1/8, 1/4, 1/2 and 1 at which the
// box still has at least the given size. Its borders then lie on whole pixels of the smaller picture, outside
// the box by less than one. Chroma that has fewer pixels is repeated, where decode_region interpolates. A
// least size of 0, and other formats: as decode_region. The result may lie in the memory of an image that
// is not needed any more.
Image decode_scaled(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    int64_t least_height, int64_t least_width, const LoadOptions& options = {},
                    Image memory = {});

}  // namespace tandem
