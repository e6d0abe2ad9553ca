// X·Xᵀ, the Gram matrix of the rows of X. The tuned versions compute one triangle and mirror it.
#pragma once

#include "tandem/ops/matmul.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// x · xᵀ (n × n) for a matrix x (n × k) of f32, f64 or i32 (which wraps around), in this thread's
/// matmul_precision(). The result is exactly symmetric. Throws Error for other dtypes and ranks.
Tensor xxt(const Tensor& x);

/// The same with a given implementation and without gradients. Throws Error if `version` does not run on the
/// tensor's device.
Tensor xxt(const Tensor& x, Version version, MatmulPrecision precision = MatmulPrecision::fp32);

}  // namespace tandem
