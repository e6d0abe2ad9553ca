// A bias: one number for each position of the last axis.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// x (…, n) + bias (n). The bias's gradient is summed over all axes but the last.
Tensor add_bias(const Tensor& x, const Tensor& bias);

}  // namespace tandem
