// A convolution whose weights no longer change, for inference and for frozen layers: they are brought once
// into the form that is fastest to use (on the CPU, Winograd's for 3×3 windows), and bias, residual and ReLU
// are applied on the way out. No gradients.
#pragma once

#include "tandem/ops/conv2d.h"

namespace tandem {

struct FixedConv2d {
  Conv2dOptions options;
  Tensor weight;       // in the dtype of the images it is for
  Tensor transformed;  // of the weight, where a faster form exists
  Tensor bias;         // f32 (f64 for f64), or an empty handle
};

// `dtype` is that of the images; weight as conv2d() takes it, bias (out) or an empty handle.
FixedConv2d fix_conv2d(const Tensor& weight, const Tensor& bias, const Conv2dOptions& options, DType dtype);

// conv2d(x) + bias + residual, then ReLU; residual is an empty handle or of the result's shape.
Tensor conv2d(const FixedConv2d& fixed, const Tensor& x, const Tensor& residual = {}, bool relu = false);

// What becomes of the sums on the way out; each may be null.
struct Conv2dEpilogue {
  const std::byte* bias = nullptr;
  const std::byte* residual = nullptr;
  bool relu = false;
};

template <Backend B>
void fixed_conv2d_kernel(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const FixedConv2d& fixed,
                         const Conv2dEpilogue& epilogue, StreamView stream);

}  // namespace tandem
