// The pixels of a binary PPM file without decoding it: they are stored as an RGB image has them in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tandem/image/image.h"

namespace tandem {

// A view into the bytes of a file with three channels of 8 bits (P6, maximum value 255) and at most
// `max_pixels` pixels. None for other files, which decode_image() may still decode.
std::optional<ImageView> view_ppm(std::span<const uint8_t> bytes, int64_t max_pixels);

// The bytes of such a file for an RGB image.
std::string encode_ppm(const ImageView& image);

}  // namespace tandem
