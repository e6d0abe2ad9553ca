// Element-wise maximum with broadcasting.
#pragma once

#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// The larger of a and b, element-wise. NaN propagates, as in NumPy. Where both are equal, each operand
/// receives half of the gradient, as in PyTorch. Throws Error unless both have the same dtype and device and
/// their shapes broadcast.
Tensor maximum(const Tensor& a, const Tensor& b);

/// The same with a given implementation and without gradients. Throws Error if `version` does not run on the
/// tensors' device.
Tensor maximum(const Tensor& a, const Tensor& b, Version version);

}  // namespace tandem
