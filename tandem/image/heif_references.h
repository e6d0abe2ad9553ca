// Which images of a HEIF file are made of which others.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

// Whether decoding any image of the file ends: none is made of itself, and none of more than 8 levels or
// 65,536 other images in all (a grid of the largest size). libheif 1.15 decodes such files until the stack
// overflows, or for hours. Of a damaged file, what precedes the damage counts.
bool heif_references_end(std::span<const uint8_t> file);

}  // namespace tandem
