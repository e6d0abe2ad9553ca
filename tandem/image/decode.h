// Reading image files: JPEG, PNG, BMP, PBM, PGM, PPM, and WebP, TIFF and HEIC where their libraries are. The
// format is detected from the content, never from the file name. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "tandem/image/decode_error.h"
#include "tandem/image/image.h"

namespace tandem {

/// The maximum size of an image file, checked before it is read.
inline constexpr int64_t max_image_file_bytes = int64_t(1) << 29;

/// Options of all decoding functions.
struct LoadOptions {
  /// Checked against the header, before memory is allocated. The memory that decoding takes at once is
  /// limited to five bytes for each of them (and never to less than 512 MiB): decoders of progressive JPEG,
  /// interlaced PNG, lossless WebP, TIFF and HEIC keep more than the pixels of the result. What a PNG unpacks
  /// to has the same limit.
  int64_t max_pixels = 179'000'000;
  bool rgb = false;  ///< always three channels: a gray file repeats its channel
  /// Subsampled chroma of a JPEG is repeated instead of interpolated, as the decoders in GPUs do.
  bool plain_chroma = false;
};

/// Whether images of a format can be decoded here: JPEG, PNG, BMP, PNM, and WebP, TIFF or HEIC if the build
/// or this machine has their libraries. If not, decoding such a file throws a DecodeError that says so.
/// Throws Error for other names.
bool can_decode(std::string_view format);

/// Reads an image file: one channel for a gray file, RGB for any other (WebP and HEIC are always RGB). The
/// orientation in EXIF, or else in XMP, is applied, alpha is blended over white, 16 bits are rounded to 8,
/// CMYK becomes RGB. The first page of a TIFF and the primary image of a HEIC file are read. Throws a
/// DecodeError if the file is truncated, damaged, too large, not an image or has no decoder here, and Error
/// if it is missing; one line that names the file.
Image load_image(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same for bytes in memory; errors refer to them as `name`.
Image decode_image(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options = {});

/// The size that decode_image() would return.
struct ImageInfo {
  int64_t height = 0;  ///< after EXIF orientation is applied, as is the width
  int64_t width = 0;
  int channels = 0;

  bool operator==(const ImageInfo&) const = default;
};

/// Reads the header only. Throws DecodeError as decode_image() does.
ImageInfo read_image_info(std::span<const uint8_t> bytes, std::string_view name,
                          const LoadOptions& options = {});

/// Exactly the pixels of decode_image() inside the box, which is in coordinates of the oriented image and
/// must lie within it. A JPEG is decoded only where needed: damage below the last row of the box may go
/// undetected, but a truncated file always throws Error. Other formats are decoded completely.
Image decode_region(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    const LoadOptions& options = {});

/// The box at a reduced scale where that is cheap: a JPEG is decoded at the smallest of the scales 1/8, 1/4,
/// 1/2 and 1 at which the box is still at least min_height x min_width. The borders of the result are rounded
/// outwards by less than one pixel at that scale. Subsampled chroma is repeated, where decode_region()
/// interpolates it. With a minimum of 0, and for other formats, this is decode_region(). The result reuses
/// the allocation of `memory`.
Image decode_scaled(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    int64_t min_height, int64_t min_width, const LoadOptions& options = {},
                    Image memory = {});

}  // namespace tandem
