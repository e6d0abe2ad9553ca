// Flattening: several axes become one.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// x with all axes from `first_axis` on merged into one: (n, height, width, channels) → (n, height · width ·
/// channels). Shares memory when x is contiguous. Differentiable. Throws Error when there is no such axis.
Tensor flatten(const Tensor& x, int first_axis = 1);

}  // namespace tandem
