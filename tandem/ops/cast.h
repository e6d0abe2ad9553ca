// Conversion between dtypes, identical on every device.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// x converted to `dtype`; x itself, not a copy, if it already has it. Float to integer truncates toward zero
/// and saturates, NaN becomes 0. Integer to integer keeps the low bits. Conversions to floats round to
/// nearest (f64 and integers are converted to bf16 through f32). The gradient is cast back; none flows
/// through integers.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace tandem
