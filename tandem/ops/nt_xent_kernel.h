// Kernels of nt_xent (nt_xent.h). All operands are dense, f32 or f64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

using NtXentTypes = TypeList<float, double>;

struct NtXentSize {
  std::int64_t rows;  // at least 2
  double temperature;

  // The other view of the row's image. Defined for odd numbers too, where it is just another row.
  constexpr std::int64_t partner(std::int64_t row) const {
    const std::int64_t half = rows / 2;
    return row < half ? row + half : row - half;
  }
};

// What nt_xent_rows_kernel computes of each row, over the other rows: axis 0 of a (4, rows) array.
enum NtXentStatistic : std::int64_t {
  row_loss,     // log Σ exp(s / temperature) − s[partner] / temperature
  row_hit,      // 1 if the partner is more similar than every other row
  row_max,      // of the similarities s
  row_log_sum,  // log Σ exp((s − row_max) / temperature)
  statistic_count,
};

// Reads the matrix of similarities (rows, rows) once per row, without its diagonal.
template <Backend B>
void nt_xent_rows_kernel(DType dtype, const NtXentSize& size, std::byte* statistics,
                         const std::byte* similarities, StreamView stream);

// Replaces the symmetric matrix of similarities by G + Gᵀ, where G is the gradient of the mean loss with
// respect to it: times the normalized rows, that is their gradient.
template <Backend B>
void nt_xent_gradient_kernel(DType dtype, const NtXentSize& size, std::byte* similarities,
                             const std::byte* statistics, StreamView stream);

// The similarities of normalized rows z (n, d), n ≥ 2, and the statistics of each row.
struct ComparedRows {
  Tensor similarities;  // (n, n)
  Tensor statistics;    // (statistic_count, n)
};
ComparedRows compare_rows(const Tensor& z, const NtXentSize& size, MatmulPrecision precision);

}  // namespace tandem::detail
