// Bias addition: one value per position of the last axis.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// x (…, n) + bias (n). The gradient of the bias is the sum over all axes but the last.
Tensor add_bias(const Tensor& x, const Tensor& bias);

}  // namespace tandem
