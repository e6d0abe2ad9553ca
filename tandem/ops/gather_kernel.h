// Kernels of gather_rows (gather.h) and its gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// The rows to read: `count` dense indices of `dtype` (i32 or i64) into a table of `table_rows` rows.
struct RowIndices {
  DType dtype;
  const std::byte* data;
  std::int64_t count;
  std::int64_t table_rows;
};

// Copies the indexed rows, of `row_bytes` bytes each, from a dense table to `out`.
template <Backend B>
void gather_rows_kernel(const RowIndices& indices, std::byte* out, const std::byte* table,
                        std::int64_t row_bytes, StreamView stream);

// The gradient of the table: row r of `out`, [table_rows, width], is the sum of the rows of g, [count,
// width], that were read from r. Writes all of `out`.
template <Backend B>
void scatter_rows_kernel(const RowIndices& indices, DType dtype, std::byte* out, const std::byte* g,
                         std::int64_t width, StreamView stream);

}  // namespace tandem::detail
