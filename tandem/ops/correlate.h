// 2-D cross-correlation of a matrix with a kernel, zero-padded to the same size.
#pragma once

#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// 2-D cross-correlation: every pixel becomes the weighted sum of its neighborhood,
///   out[y][x] = Σ kernel[i][j] · image[y + i − h/2][x + j − w/2]   (integer division; 0 outside the image)
/// for an h × w kernel of any size, including even sizes and kernels larger than the image. The output has
/// the size of the image. Equals scipy.signal.convolve2d(image, kernel[::-1, ::-1], mode="same") up to
/// rounding. f32 and f64; gradients flow to both operands. Throws Error unless both are matrices of the same
/// dtype and device and the kernel has at least one element.
Tensor correlate(const Tensor& image, const Tensor& kernel);

/// The same with a given implementation and without gradients. Throws Error if `version` does not run on the
/// tensors' device.
Tensor correlate(const Tensor& image, const Tensor& kernel, Version version);

}  // namespace tandem
