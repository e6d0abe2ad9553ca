#include "tandem/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/buffer.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/matmul_kernel.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

// Below this many multiply-adds, a second thread costs more time than it saves.
constexpr double min_work = 50'000;
// Tiles start at multiples of this: BLAS kernels are fastest on whole vectors, but small products need even
// shares.
constexpr std::int64_t tile_unit = 4;

std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// Multiply-adds. A double, because the product of three sizes may overflow an integer.
double work_of(GemmSize size) {
  return static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
}

// C is split into tiles; those at the end may be smaller.
struct TileGrid {
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t grid_rows = 1;
  std::int64_t grid_columns = 1;

  std::int64_t count() const { return grid_rows * grid_columns; }
};

// Up to `tiles` tiles. The largest tile determines the time. A tile also packs its rows of A and columns of
// B, which costs as much as `packing` more rows or columns of C.
TileGrid split_into_tiles(GemmSize size, std::int64_t tiles) {
  constexpr std::int64_t packing = 16;
  TileGrid best{size.m, size.n};
  if (work_of(size) < min_work) return best;
  const auto cost = [&](const TileGrid& grid) {
    return grid.tile_rows * grid.tile_columns + packing * (grid.tile_rows + grid.tile_columns);
  };
  for (std::int64_t grid_rows = 1; grid_rows <= tiles; ++grid_rows) {
    TileGrid grid{divide_up(divide_up(size.m, grid_rows), tile_unit) * tile_unit,
                  divide_up(divide_up(size.n, tiles / grid_rows), tile_unit) * tile_unit};
    grid.tile_rows = std::min(grid.tile_rows, size.m);
    grid.tile_columns = std::min(grid.tile_columns, size.n);
    grid.grid_rows = divide_up(size.m, grid.tile_rows);
    grid.grid_columns = divide_up(size.n, grid.tile_columns);
    if (cost(grid) < cost(best)) best = grid;
  }
  return best;
}

// The address of element (row, column).
template <class T>
const T* element(const T* matrix, MatrixLayout layout, std::int64_t row, std::int64_t column) {
  return layout.transposed ? matrix + column * layout.leading_dimension + row
                           : matrix + row * layout.leading_dimension + column;
}

// A dense f32 copy of a bf16 matrix in the same order; updates `layout` to describe the copy.
Buffer to_f32(const BFloat16* matrix, MatrixLayout& layout, std::int64_t rows, std::int64_t columns) {
  const std::int64_t stored_rows = layout.transposed ? columns : rows;
  const std::int64_t stored_columns = layout.transposed ? rows : columns;
  Buffer copy(static_cast<std::size_t>(rows * columns) * sizeof(float), current_stream(cpu_device));
  auto* to = reinterpret_cast<float*>(copy.data());
  with_simd([&]<std::size_t>() __attribute__((always_inline)) {
    for (std::int64_t row = 0; row < stored_rows; ++row)
      for (std::int64_t i = 0; i < stored_columns; ++i)
        to[row * stored_columns + i] = static_cast<float>(matrix[row * layout.leading_dimension + i]);
  });
  layout.leading_dimension = stored_columns;
  return copy;
}

template <class T>
void multiply_tile(GemmSize size, MatrixLayout layout_a, const T* a, MatrixLayout layout_b, const T* b, T* c,
                   std::int64_t ldc) {
  if constexpr (std::same_as<T, BFloat16>) {
    const Buffer wide_a = to_f32(a, layout_a, size.m, size.k), wide_b = to_f32(b, layout_b, size.k, size.n);
    const Buffer wide_c(static_cast<std::size_t>(size.m * size.n) * sizeof(float),
                        current_stream(cpu_device));
    auto* result = reinterpret_cast<float*>(wide_c.data());
    multiply_tile(size, layout_a, reinterpret_cast<const float*>(wide_a.data()), layout_b,
                  reinterpret_cast<const float*>(wide_b.data()), result, size.n);
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t row = 0; row < size.m; ++row)
        for (std::int64_t column = 0; column < size.n; ++column)
          c[row * ldc + column] = BFloat16(result[row * size.n + column]);
    });
  } else {
    gemm_tile<T>(
        {.size = size,
         .a = {.data = a, .leading_dimension = layout_a.leading_dimension, .transposed = layout_a.transposed},
         .b = {.data = b, .leading_dimension = layout_b.leading_dimension, .transposed = layout_b.transposed},
         .c = c,
         .leading_dimension_c = ldc});
  }
}

template <class T>
void multiply_cpu(const MatmulPlan& plan, T* c, const T* a, const T* b) {
  const std::int64_t m = plan.size.m, n = plan.size.n, k = plan.size.k;
  const std::int64_t batches = plan.batches.numel, threads = thread_count();
  // With many batches one tile each, otherwise as many tiles per batch as divide evenly among the threads.
  const TileGrid grid =
      split_into_tiles(plan.size, batches >= 4 * threads ? 1 : threads / std::gcd(batches, threads));
  const double tile_work = work_of({grid.tile_rows, grid.tile_columns, k});
  const auto grain = static_cast<std::int64_t>(std::ceil(min_work / (2 * tile_work)));
  parallel_for(batches * grid.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const auto offset = plan.batches.offsets(task / grid.count());
      const std::int64_t tile = task % grid.count();
      const std::int64_t row = tile / grid.grid_columns * grid.tile_rows;
      const std::int64_t column = tile % grid.grid_columns * grid.tile_columns;
      const GemmSize size{std::min(grid.tile_rows, m - row), std::min(grid.tile_columns, n - column), k};
      multiply_tile(size, plan.a, element(a + offset[1], plan.a, row, 0), plan.b,
                    element(b + offset[2], plan.b, 0, column), c + offset[0] + row * n + column, n);
    }
  });
}

}  // namespace

template <>
void matmul_kernel<Backend::cpu>(DType dtype, const MatmulPlan& plan, MatmulPrecision, std::byte* c,
                                 const std::byte* a, const std::byte* b, StreamView) {
  on_dtype(FloatTypes{}, dtype, "matmul", [&]<class T>() {
    multiply_cpu(plan, reinterpret_cast<T*>(c), reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b));
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

thread_local MatmulPrecision current_precision = MatmulPrecision::fp32;

// How BLAS can read the matrices of x in place, if it can.
std::optional<detail::MatrixLayout> matrix_layout(const Tensor& x) {
  const int rank = x.rank();
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  const std::int64_t row_step = x.strides()[rank - 2], column_step = x.strides()[rank - 1];
  if (columns <= 1 || column_step == 1) {
    if (rows <= 1) return detail::MatrixLayout{false, columns};
    if (row_step >= columns) return detail::MatrixLayout{false, row_step};
  }
  if (rows <= 1 || row_step == 1) {
    if (columns <= 1) return detail::MatrixLayout{true, rows};
    if (column_step >= rows) return detail::MatrixLayout{true, column_step};
  }
  return std::nullopt;
}

// The sizes of the leading axes, without the last two, followed by `appended`.
Shape batch_shape(const Tensor& x, std::initializer_list<std::int64_t> appended = {}) {
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end() - 2);
  sizes.insert(sizes.end(), appended);
  return Shape(std::span<const std::int64_t>(sizes));
}

// The strides of the leading axes of x, broadcast to `batches`.
Dims batch_strides(const Tensor& x, const Shape& batches) {
  Dims strides = Dims::filled(batches.rank(), 0);
  const int added = batches.rank() - (x.rank() - 2);
  for (int axis = 0; axis < x.rank() - 2; ++axis)
    if (x.shape()[axis] != 1) strides[axis + added] = x.strides()[axis];
  return strides;
}

Tensor compute(Tensor a, Tensor b, MatmulPrecision precision) {
  const Device device = a.device();
  const Shape batches = broadcast_shapes(batch_shape(a), batch_shape(b), "matmul");
  std::vector<std::int64_t> sizes(batches.begin(), batches.end());
  sizes.insert(sizes.end(), {a.size(-2), b.size(-1)});
  Tensor out = Tensor::empty(Shape(std::span<const std::int64_t>(sizes)), a.dtype(), device);
  if (a.size(-1) == 0) clear(out);
  if (a.size(-1) == 0 || out.numel() == 0) return out;
  if (!matrix_layout(a)) a = a.contiguous();
  if (!matrix_layout(b)) b = b.contiguous();
  const detail::MatmulPlan plan{
      .size = {a.size(-2), b.size(-1), a.size(-1)},
      .a = matrix_layout(a).value(),
      .b = matrix_layout(b).value(),
      .batches = detail::make_layout<3>(
          batches, {batch_strides(out, batches), batch_strides(a, batches), batch_strides(b, batches)})};
  on_backend(device, "matmul", [&]<Backend B>() {
    detail::matmul_kernel<B>(a.dtype(), plan, precision, out.bytes(), a.bytes(), b.bytes(),
                             current_stream(device));
  });
  return out;
}

}  // namespace

MatmulPrecision matmul_precision() {
  return current_precision;
}

MatmulPrecisionScope::MatmulPrecisionScope(MatmulPrecision precision) : previous_(current_precision) {
  current_precision = precision;
}

MatmulPrecisionScope::~MatmulPrecisionScope() {
  current_precision = previous_;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  common_device("matmul", {&a, &b});
  const DType dtype = common_dtype("matmul", {&a, &b});
  check(is_floating(dtype), "[matmul] expected a floating dtype, got {}", name_of(dtype));
  check(a.rank() >= 2 && b.rank() >= 2 && a.size(-1) == b.size(-2),
        "[matmul] expected matrices or batches of shapes (…, m, k) and (…, k, n), got {} and {}",
        a.shape().to_string(), b.shape().to_string());
  if (a.rank() > 2 && b.rank() == 2 && a.is_contiguous()) {  // the rows of all batches form one matrix
    const std::int64_t rows = batch_shape(a, {a.size(-2)}).numel();
    return matmul(a.reshape({rows, a.size(-1)}), b).reshape(batch_shape(a, {a.size(-2), b.size(-1)}));
  }
  const MatmulPrecision precision = matmul_precision();
  Tensor out = compute(a.detach(), b.detach(), precision);
  if (wants_grad(a) || wants_grad(b))
    record(out, "matmul", {&a, &b},
           [shape_a = a.shape(), shape_b = b.shape(), a = wants_grad(b) ? a.detach() : Tensor(),
            b = wants_grad(a) ? b.detach() : Tensor(), precision](const Tensor& g) {
             return Gradients{b.defined() ? sum_to(compute(g, b.transpose(), precision), shape_a) : Tensor(),
                              a.defined() ? sum_to(compute(a.transpose(), g, precision), shape_b) : Tensor()};
           });
  return out;
}

}  // namespace tandem
