// Rows of unit length, for cosine similarities and contrastive losses.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Each row of x (n, d) divided by its Euclidean norm, which is summed in f64. A row shorter than 1e-12
/// becomes zero and receives no gradient. f32, f64 or bf16 (computed in f32). Throws Error for another rank
/// or dtype.
Tensor normalize_rows(const Tensor& x);

}  // namespace tandem
