// What decode.cpp and the format readers share; not for use outside this room.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

struct EncodedImage {
  std::span<const uint8_t> bytes;
  std::string_view name;
  int64_t max_pixels;
};

// Every reader calls this as soon as it knows the size, and only then takes memory. Refuses empty images too.
void check_size(const EncodedImage& file, int64_t width, int64_t height);

Image decode_jpeg(const EncodedImage& file);
Image decode_png(const EncodedImage& file);
Image decode_bmp(const EncodedImage& file);
Image decode_pnm(const EncodedImage& file);

// `value` with coverage `alpha` over white, rounded to nearest.
inline uint8_t over_white(uint32_t value, uint32_t alpha) {
  return uint8_t((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

}  // namespace tandem
