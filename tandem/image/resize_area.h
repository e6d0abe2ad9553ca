// Resizing by area averaging: every output pixel is the mean of the input area it covers. Meant for reducing;
// when enlarging, pixels become squares. (Training transforms use resize(), which equals PIL's.)
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

// What is added to a mean before it is rounded down: a half, and more than the error of any order of
// summation, so that other implementations of the same mean round halves in the same way.
inline constexpr double area_rounding = 0.5 + 1e-6;

Image resize_area(const Image& image, int64_t height, int64_t width);

// The same, written to `out` (height x width x channels). `row` is memory that calls reuse.
void resize_area_into(const ImageView& image, int64_t height, int64_t width, uint8_t* out,
                      std::vector<double>& row);

// The image with its aspect ratio kept and no side longer than max_side; a smaller one is copied.
Image shrink_to_side(const Image& image, int64_t max_side);

}  // namespace tandem
