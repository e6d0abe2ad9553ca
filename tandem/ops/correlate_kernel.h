// Shape description and kernels of correlate (correlate.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

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

template <Version V>
void correlate_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                      const std::byte* kernel, std::byte* out, StreamView stream);

// d kernel[i][j] = Σ gradient[y][x] · image[y + i − anchor_y][x + j − anchor_x].
template <Backend B>
void correlate_weights_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                              const std::byte* gradient, std::byte* out, StreamView stream);

}  // namespace tandem::detail
