// 2-D convolution of NHWC images. As in deep-learning libraries, it is a cross-correlation: filters are not
// flipped.
#pragma once

#include <cstdint>

#include "tandem/ops/conv/window.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of conv2d().
struct Conv2dOptions {
  Window window = {};
  std::int64_t groups = 1;  ///< Must divide the input channels and the filters.
};

/// Convolves x (n, height, width, channels) with weight (out, kernel y, kernel x, channels / groups) and adds
/// bias (out), which may be an empty handle. Returns (n, height', width', out) in x's dtype.
///
/// Computes in f32, f64 or bf16. Images in bf16 also accept an f32 weight and bias: they are rounded to bf16,
/// and their gradients are f32. f32 products follow matmul_precision(). Results do not depend on the number
/// of threads. Throws Error for dtypes, shapes, devices or options that do not match.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

}  // namespace tandem
