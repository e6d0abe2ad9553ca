// Antialiased bilinear and bicubic resizing, byte for byte equal to Pillow's Image.resize.
#pragma once

#include <cstdint>

#include "tandem/image/image.h"

namespace tandem {

/// Interpolation filters, as in Pillow.
enum class ResizeFilter : uint8_t { bilinear, bicubic };

/// Resizes a gray or RGB image to height x width, whatever its aspect ratio. Throws Error for an empty side.
Image resize(const ImageView& in, int64_t height, int64_t width,
             ResizeFilter filter = ResizeFilter::bilinear);

}  // namespace tandem
