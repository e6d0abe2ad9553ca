// The affine map of a linear layer. The gradient of the weight is dense and in the layout of the weight.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// x · weightᵀ + bias of shape (n, out), for x (n, in), weight (out, in) and bias (out) or an empty Tensor.
/// Throws Error if shapes, dtypes or devices do not match.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace tandem
