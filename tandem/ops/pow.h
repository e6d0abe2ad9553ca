// Element-wise power with one exponent.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// xᵖ in f32, f64 or bf16 (computed in f32), with the special values of std::pow: NaN for a negative x and a
/// fractional exponent. Differentiable in x. Throws Error for integer dtypes.
Tensor pow(const Tensor& x, double exponent);

}  // namespace tandem
