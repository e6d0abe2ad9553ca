// Element-wise comparisons with broadcasting. The result is u8: 1 where the relation holds, 0 elsewhere. NaN
// is unequal to everything, including itself, and every ordering with it is false. No gradient. All throw
// Error unless both operands are on one device, have the same dtype or are both integers, and their shapes
// broadcast.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// a == b.
Tensor equal(const Tensor& a, const Tensor& b);
/// a != b.
Tensor not_equal(const Tensor& a, const Tensor& b);
/// a < b.
Tensor less(const Tensor& a, const Tensor& b);
/// a <= b.
Tensor less_equal(const Tensor& a, const Tensor& b);
/// a > b.
Tensor greater(const Tensor& a, const Tensor& b);
/// a >= b.
Tensor greater_equal(const Tensor& a, const Tensor& b);

}  // namespace tandem
