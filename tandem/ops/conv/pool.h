// Max and average pooling of NHWC images.
#pragma once

#include "tandem/ops/conv/window.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// The maximum of each window of x (n, height, width, channels) in f32, f64 or bf16, with PyTorch's
/// semantics: padding never wins, NaN always does, and of equal values the first in row-major order gets the
/// gradient. Throws Error for a kernel of more than 256 elements or a padding of more than half the kernel.
Tensor max_pool2d(const Tensor& x, YX kernel, const Window& window);
/// The same with windows that do not overlap: the stride is the kernel.
Tensor max_pool2d(const Tensor& x, YX kernel);

/// The mean of each window; padding counts as zeros (PyTorch's count_include_pad). Throws Error for a
/// dilation other than 1 or a padding of more than half the kernel.
Tensor avg_pool2d(const Tensor& x, YX kernel, const Window& window);
/// The same with windows that do not overlap: the stride is the kernel.
Tensor avg_pool2d(const Tensor& x, YX kernel);

/// Averages x down to out.y × out.x regions. Neighboring regions overlap by a row or column where the input
/// size is not a multiple of the output size.
Tensor adaptive_avg_pool2d(const Tensor& x, YX out);

}  // namespace tandem
