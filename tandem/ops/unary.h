// Element-wise functions of one operand. exp, log and sqrt throw Error for integer dtypes; square,
// absolute and sign accept every dtype, and integers wrap around on overflow.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// eˣ.
Tensor exp(const Tensor& x);
/// Natural logarithm; −∞ at 0, NaN below.
Tensor log(const Tensor& x);
/// Square root; NaN below 0.
Tensor sqrt(const Tensor& x);
/// x².
Tensor square(const Tensor& x);
/// |x|; the gradient at 0 is 0.
Tensor absolute(const Tensor& x);
/// −1, 0 or 1; NaN for NaN. The gradient is 0.
Tensor sign(const Tensor& x);

}  // namespace tandem
