// Blurs an 8-bit image with a small kernel (BlurKernel in recipe.h; reference.h has the definition).
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/image/image.h"

namespace tandem::detail {

// `out` may not overlap `in`; `words` is a buffer.
void blur_image(const BlurKernel& kernel, const ImageSize& size, const std::uint8_t* in, std::uint8_t* out,
                std::vector<std::int32_t>& words);

}  // namespace tandem::detail
