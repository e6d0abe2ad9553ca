// The product of a linear layer with its bias, with gradients that come out dense in the weight's own layout.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// x (n, in) · weightᵀ + bias: weight (out, in), bias (out) or an empty handle. Gives (n, out).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace tandem
