// The three matrix products of a linear layer in every version, for the study that compares them. linear()
// and its gradient compute the same products in the tuned version.
#pragma once

#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// x (n, in) · weightᵀ + bias = y (n, out), for weight (out, in) and bias (out). All operands have one dtype,
// f32 or f64. Throws Error for other dtypes, shapes that do not match, and a version of another device.
Tensor linear_output(const Tensor& x, const Tensor& weight, const Tensor& bias, Version version);

// The gradient of the input: dy (n, out) · weight (out, in) = dx (n, in).
Tensor linear_input_gradient(const Tensor& dy, const Tensor& weight, Version version);

// The gradient of the weight: dyᵀ (out, n) · x (n, in) = dweight (out, in).
Tensor linear_weight_gradient(const Tensor& dy, const Tensor& x, Version version);

}  // namespace tandem
