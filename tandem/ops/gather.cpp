#include "tandem/ops/gather.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/gather_kernel.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using IndexTypes = TypeList<std::int64_t, std::int32_t>;

}  // namespace

template <>
void gather_rows_kernel<Backend::cpu>(const RowIndices& indices, std::byte* out, const std::byte* table,
                                      std::int64_t row_bytes, StreamView) {
  on_dtype(IndexTypes{}, indices.dtype, "gather_rows", [&]<class Index>() {
    const auto* index = reinterpret_cast<const Index*>(indices.data);
    for (std::int64_t row = 0; row < indices.count; ++row)
      check(index[row] >= 0 && index[row] < indices.table_rows,
            "[gather_rows] expected indices of 0 or more and below {}, got {} at position {}",
            indices.table_rows, index[row], row);
    if (row_bytes == 0) return;
    parallel_for(indices.count, std::max<std::int64_t>((1 << 16) / row_bytes, 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row)
                     std::memcpy(out + row * row_bytes, table + index[row] * row_bytes, row_bytes);
                 });
  });
}

template <>
void scatter_rows_kernel<Backend::cpu>(const RowIndices& indices, DType dtype, std::byte* out,
                                       const std::byte* g, std::int64_t width, StreamView) {
  // Counting sort: `order` lists, for each row of the table, the positions that read it, in ascending order.
  std::vector<std::int64_t> begin_of(indices.table_rows + 2, 0), order(indices.count);
  on_dtype(IndexTypes{}, indices.dtype, "gather_rows", [&]<class Index>() {
    const auto* index = reinterpret_cast<const Index*>(indices.data);
    for (std::int64_t row = 0; row < indices.count; ++row) ++begin_of[index[row] + 2];
    std::partial_sum(begin_of.begin(), begin_of.end(), begin_of.begin());
    for (std::int64_t row = 0; row < indices.count; ++row) order[begin_of[index[row] + 1]++] = row;
  });
  on_dtype(FloatTypes{}, dtype, "gather_rows", [&]<class T>() {
    using Sum = ComputeType<T>;
    auto* to = reinterpret_cast<T*>(out);
    const auto* from = reinterpret_cast<const T*>(g);
    parallel_for(indices.table_rows, std::max<std::int64_t>((1 << 14) / std::max<std::int64_t>(width, 1), 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<Sum> total(width);
                   for (std::int64_t row = begin; row < end; ++row) {
                     std::fill(total.begin(), total.end(), Sum{0});
                     for (std::int64_t k = begin_of[row]; k < begin_of[row + 1]; ++k)
                       for (std::int64_t i = 0; i < width; ++i)
                         total[i] += convert<Sum>(from[order[k] * width + i]);
                     for (std::int64_t i = 0; i < width; ++i) to[row * width + i] = convert<T>(total[i]);
                   }
                 });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

// `indices` must be contiguous; g has the shape of the gathered rows.
void scatter_rows(const Tensor& out, const Tensor& g, const Tensor& indices) {
  const Tensor dense = g.contiguous();
  const Shape& table_shape = out.shape();
  if (out.numel() > 0)
    on_backend(g.device(), "gather_rows", [&]<Backend B>() {
      detail::scatter_rows_kernel<B>({.dtype = indices.dtype(),
                                      .data = indices.bytes(),
                                      .count = indices.numel(),
                                      .table_rows = table_shape[0]},
                                     g.dtype(), out.bytes(), dense.bytes(), out.numel() / table_shape[0],
                                     current_stream(g.device()));
    });
}

Tensor table_gradient(const Tensor& g, const Tensor& indices, const Shape& table_shape) {
  const ShardPart* const part = detail::shard_part();
  if (part && indices.rank() > 0)
    return detail::stack_shards(
        *part, table_shape,
        {.op = "gather_rows", .size = g.size(0), .dtype = g.dtype(), .device = g.device()},
        [&](const Tensor& to, IndexRange range) {
          scatter_rows(to, g.slice(0, range.begin, range.end), indices.slice(0, range.begin, range.end));
        });
  Tensor out = Tensor::empty(table_shape, g.dtype(), g.device());
  scatter_rows(out, g, indices);
  return out;
}

}  // namespace

Tensor gather_rows(const Tensor& table, const Tensor& indices) {
  const Device device = common_device("gather_rows", {&table, &indices});
  check(table.rank() >= 1, "[gather_rows] expected a table of at least one axis, got shape []");
  check(indices.dtype() == DType::i64 || indices.dtype() == DType::i32,
        "[gather_rows] expected indices of i64 or i32, got {}", name_of(indices.dtype()));
  const int index_rank = indices.rank(), row_rank = table.rank() - 1;
  check(index_rank + row_rank <= max_rank, "[gather_rows] expected a result of at most {} axes, got {}",
        max_rank, index_rank + row_rank);
  Dims sizes = Dims::filled(index_rank + row_rank, 1);
  Dims row_sizes = Dims::filled(row_rank, 1);
  for (int axis = 0; axis < index_rank; ++axis) sizes[axis] = indices.shape()[axis];
  for (int axis = 0; axis < row_rank; ++axis)
    sizes[index_rank + axis] = row_sizes[axis] = table.shape()[axis + 1];
  const std::int64_t width = Shape(row_sizes).numel();
  Tensor out = Tensor::empty(Shape(sizes), table.dtype(), device);
  const Tensor dense_table = table.detach().contiguous(), dense_indices = indices.contiguous();
  if (indices.numel() > 0)
    on_backend(device, "gather_rows", [&]<Backend B>() {
      detail::gather_rows_kernel<B>({.dtype = indices.dtype(),
                                     .data = dense_indices.bytes(),
                                     .count = indices.numel(),
                                     .table_rows = table.shape()[0]},
                                    out.bytes(), dense_table.bytes(),
                                    width * static_cast<std::int64_t>(size_of(table.dtype())),
                                    current_stream(device));
    });
  if (wants_grad(table))
    record(out, "gather_rows", {&table}, [dense_indices, shape = table.shape()](const Tensor& g) {
      return Gradients{table_gradient(g, dense_indices, shape)};
    });
  return out;
}

}  // namespace tandem
