// Shape description and kernels of correlate (correlate.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

using FloatingTypes = TypeList<float, double>;

// Kernel element (anchor_y, anchor_x) is aligned with the output pixel. A flipped kernel is read in reverse
// order, i.e. rotated by 180 degrees: the gradient of the image is such a correlation.
struct CorrelateShape {
  std::int64_t height, width;  // of the image
  std::int64_t kernel_height, kernel_width;
  std::int64_t anchor_y, anchor_x;
  bool flipped = false;

  constexpr std::int64_t weight_index(std::int64_t i, std::int64_t j) const {
    const std::int64_t index = i * kernel_width + j;
    return flipped ? kernel_height * kernel_width - 1 - index : index;
  }
};

// Pixel (y, x) of the result, with plain loops.
template <class T>
[[gnu::always_inline]] constexpr T correlate_pixel(const CorrelateShape& s, const T* image, const T* kernel,
                                                   std::int64_t y, std::int64_t x) {
  T sum = 0;
  for (std::int64_t i = 0; i < s.kernel_height; ++i)
    for (std::int64_t j = 0; j < s.kernel_width; ++j) {
      const std::int64_t from_y = y + i - s.anchor_y, from_x = x + j - s.anchor_x;
      if (from_y >= 0 && from_y < s.height && from_x >= 0 && from_x < s.width)
        sum += kernel[s.weight_index(i, j)] * image[from_y * s.width + from_x];
    }
  return sum;
}

template <Version V>
void correlate_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                      const std::byte* kernel, std::byte* out, StreamView stream);

// d kernel[i][j] = Σ gradient[y][x] · image[y + i − anchor_y][x + j − anchor_x].
template <Backend B>
void correlate_weights_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                              const std::byte* gradient, std::byte* out, StreamView stream);

}  // namespace tandem::detail
