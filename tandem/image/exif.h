// The orientation in metadata: how the camera was held, as a number from 1 (upright) to 8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

// The orientation in an EXIF block (a TIFF header, with or without "Exif\0\0" before it). Returns 1 if there
// is none or it is invalid, because damaged metadata is no reason to reject an image.
int exif_orientation(std::span<const uint8_t> block);
// The same, but nothing if there is no orientation. An invalid one is 1.
std::optional<int> find_exif_orientation(std::span<const uint8_t> block);

// The orientation in XMP (tiff:Orientation, as an attribute or an element); nothing if there is none.
std::optional<int> find_xmp_orientation(std::string_view xmp);

// Rotates and mirrors the image so that it is upright.
Image apply_orientation(Image image, int orientation);

// Whether apply_orientation() swaps height and width.
inline bool swaps_axes(int orientation) {
  return orientation >= 5;
}

// Maps a box of the upright image to the stored image, which is height x width.
PixelBox stored_box(const PixelBox& upright_box, int64_t height, int64_t width, int orientation);

}  // namespace tandem
