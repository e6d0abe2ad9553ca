// Rows of a table picked by index. The gradient adds each row's gradient to the row it came from, in the
// order of the indices: the same bits every time, on either device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// table [n, …] and indices […] (i64 or i32) give [indices…, …]. An index outside [0, n) is an Error on the
// CPU; on CUDA, where looking would mean waiting for the device, its row is 0 and it gets no gradient.
Tensor gather_rows(const Tensor& table, const Tensor& indices);

// `rows` rows of `row_bytes` bytes from a dense table of `table_rows`.
template <Backend B>
void gather_rows_kernel(DType index_dtype, std::byte* out, const std::byte* table, const std::byte* indices,
                        std::int64_t table_rows, std::int64_t rows, std::int64_t row_bytes,
                        StreamView stream);

// Writes all of `out`, [table_rows, width]: the sum of the rows of g, [rows, width], that were taken from
// each.
template <Backend B>
void scatter_rows_kernel(DType dtype, DType index_dtype, std::byte* out, const std::byte* g,
                         const std::byte* indices, std::int64_t table_rows, std::int64_t rows,
                         std::int64_t width, StreamView stream);

}  // namespace tandem
