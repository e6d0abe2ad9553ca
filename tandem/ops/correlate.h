// 2-D correlation: every pixel becomes the weighted sum of its neighbours, the kernel's values being the
// weights,
//   out[y][x] = Σ kernel[i][j] · image[y + i − h/2][x + j − w/2]   (whole-number division; 0 outside the
//   image)
// for an h × w kernel of any size, even or larger than the image too. The output has the image's size. Equal
// to scipy.signal.convolve2d(image, kernel[::-1, ::-1], mode="same"). f32 and f64, within rounding of the
// sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Both operands are matrices of one dtype and device. Gradients flow to both.
Tensor correlate(const Tensor& image, const Tensor& kernel);
// A given version, without gradients.
Tensor correlate(const Tensor& image, const Tensor& kernel, Version version);

// The kernel's element (anchor_y, anchor_x) lies over the pixel that is computed. A turned kernel is read
// from its last element to its first: rotated by 180 degrees, which the gradient needs.
struct CorrelateShape {
  std::int64_t height, width;  // of the image
  std::int64_t kernel_height, kernel_width;
  std::int64_t anchor_y, anchor_x;
  bool turned = false;

  constexpr std::int64_t weight_index(std::int64_t i, std::int64_t j) const {
    const std::int64_t index = i * kernel_width + j;
    return turned ? kernel_height * kernel_width - 1 - index : index;
  }
};

template <Version V>
void correlate_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                      const std::byte* kernel, std::byte* out, StreamView stream);

// d kernel[i][j] = Σ gradient[y][x] · image[y + i − anchor_y][x + j − anchor_x].
template <Backend B>
void correlate_weights_kernel(DType dtype, const CorrelateShape& shape, const std::byte* image,
                              const std::byte* gradient, std::byte* out, StreamView stream);

}  // namespace tandem
