// Kernels of normalize_rows (normalize_rows.h), and the operation with the norms, for operations that need
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

inline constexpr double min_row_norm = 1e-12;

struct NormalizedRows {
  Tensor rows;
  Tensor norms;  // (n) in the compute type; 0 for a row that is too short
};

// Without a gradient. x is (n, d), contiguous and detached.
NormalizedRows normalize_rows_with_norms(const Tensor& x);
// The gradient of x from that of the rows, which has their dtype.
Tensor normalize_rows_gradient(const NormalizedRows& normalized, const Tensor& g);

// All operands are dense; `norms` has the compute type. Sizes may be 0.
template <Backend B>
void normalize_rows_kernel(DType dtype, std::int64_t rows, std::int64_t columns, std::byte* out,
                           std::byte* norms, const std::byte* x, StreamView stream);
// dx = (g − z (z · g)) / norm, row by row, with z the normalized row.
template <Backend B>
void normalize_rows_gradient_kernel(DType dtype, std::int64_t rows, std::int64_t columns, std::byte* dx,
                                    const std::byte* z, const std::byte* norms, const std::byte* g,
                                    StreamView stream);

}  // namespace tandem::detail
