// Which images of a HEIF file are made of which others, and how large they become.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tandem {

// Whether decoding any image of the file ends: none is made of itself, and none of more than 8 levels or
// 65,536 other images in all (a grid of the largest size). libheif 1.15 decodes such files until the stack
// overflows, or for hours. Of a damaged file, what precedes the damage counts.
bool heif_references_end(std::span<const uint8_t> file);

struct HeifCanvas {
  uint64_t width = 0, height = 0;  // below 2³²
};

// The sizes of all images of the file that are put together of others: grids and overlays. libheif 1.15
// allocates them, whatever size the properties of the image say, and crashed on a grid of more than 2 GiB.
// None if the file describes its images twice, or in a way that readers may understand differently. Of a
// damaged file, what precedes the damage.
std::optional<std::vector<HeifCanvas>> heif_canvases(std::span<const uint8_t> file);

}  // namespace tandem
