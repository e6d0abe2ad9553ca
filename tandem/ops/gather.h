// Rows of a table selected by index, as in an embedding.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// table (n, …) and indices (…), i64 or i32, give the rows in shape (indices…, …). The gradient accumulates
/// in the order of the indices, so its bits do not vary between runs. An index outside [0, n) throws Error on
/// the CPU; on CUDA, where a check would have to synchronize, its row is 0 and receives no gradient.
Tensor gather_rows(const Tensor& table, const Tensor& indices);

}  // namespace tandem
