// The interface between decode.cpp and the format readers (format_*.cpp); internal to tandem/image.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

struct EncodedImage {
  std::span<const uint8_t> bytes;
  std::string_view name;
  int64_t max_pixels;
  bool rgb = false;           // three channels requested: a reader may return RGB directly, but need not
  bool plain_chroma = false;  // repeat subsampled chroma
};

// The content of a header: the size as stored, before the orientation is applied.
struct StoredInfo {
  int64_t height, width;
  int channels;
  int orientation;
};

// Throws Error for empty images and for more pixels than allowed. Every reader calls this before it
// allocates.
void check_size(const EncodedImage& file, int64_t width, int64_t height);

// Throws Error if decoding takes more bytes at once than LoadOptions::max_pixels allows. Called before they
// are allocated, with all buffers of the reader and of its library that grow with the image.
void check_memory(const EncodedImage& file, int64_t bytes);

// The same for what is unpacked and not kept, which takes time: a file of 1 MB may unpack to 1 GB.
void check_unpacked(const EncodedImage& file, int64_t bytes);

// Throws the Error for a format without a decoder: "no decoder for HEIC in this build". `where` may say what
// is missing instead.
[[noreturn]] void fail_no_decoder(const EncodedImage& file, std::string_view format,
                                  std::string_view where = "in this build");

// Whether the optional decoders are there: compiled in and, if they are opened at run time, installed.
bool has_webp();
bool has_tiff();
bool has_heif();

StoredInfo read_jpeg_info(const EncodedImage& file);
StoredInfo read_png_info(const EncodedImage& file);
StoredInfo read_webp_info(const EncodedImage& file);
StoredInfo read_tiff_info(const EncodedImage& file);
StoredInfo read_heif_info(const EncodedImage& file);
StoredInfo read_bmp_info(const EncodedImage& file);
StoredInfo read_pnm_info(const EncodedImage& file);

Image decode_jpeg(const EncodedImage& file);
Image decode_png(const EncodedImage& file);
Image decode_webp(const EncodedImage& file);
Image decode_tiff(const EncodedImage& file);
Image decode_heif(const EncodedImage& file);
Image decode_bmp(const EncodedImage& file);
Image decode_pnm(const EncodedImage& file);

// Only the pixels of `box` (in upright coordinates), at the smallest DCT scale at which the box has at least
// the given size; at full size if the minimum is 0 or no smaller scale is large enough.
Image decode_jpeg_box(const EncodedImage& file, const PixelBox& box, int64_t min_height, int64_t min_width,
                      Image memory);

// `value` with coverage `alpha` over white, rounded to nearest.
inline uint8_t over_white(uint32_t value, uint32_t alpha) {
  return uint8_t((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

// `count` pixels of (value, alpha) or (R, G, B, alpha) to (value) or (R, G, B); `out` may be `in`.
void blend_over_white(const uint8_t* in, int64_t count, int channels, uint8_t* out);
// All pixels of an image, in place.
void blend_over_white(std::vector<uint8_t>& pixels, int channels);

}  // namespace tandem
