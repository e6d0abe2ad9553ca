// EXIF orientation: how a camera was held, as a number from 1 (upright) to 8.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/image/image.h"

namespace tandem {

// The orientation in an EXIF block (a TIFF header, with or without "Exif\0\0" before it); 1 when there is
// none or it makes no sense, since a picture is worth showing even when its notes are damaged.
int exif_orientation(std::span<const uint8_t> block);

// The picture turned upright.
Image upright(Image image, int orientation);

// Whether turning upright swaps height and width.
inline bool swaps_sides(int orientation) {
  return orientation >= 5;
}

// Where a box of the upright picture lies in the stored one, which is height x width.
PixelBox stored_box(const PixelBox& upright_box, int64_t height, int64_t width, int orientation);

}  // namespace tandem
