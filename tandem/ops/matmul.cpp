#include "tandem/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Under this many multiply-adds a second thread costs more than it brings.
constexpr double least_work = 50'000;
// Tiles start at multiples of this: BLAS kernels like whole vectors, small products an even share.
constexpr std::int64_t tile_unit = 4;

std::int64_t pieces(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// Multiply-adds; the product of three sizes may not fit an integer.
double work_of(ProductSize size) {
  return static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
}

// C is cut into tiles of rows × columns, the last ones smaller.
struct TileGrid {
  std::int64_t rows, columns;         // of one tile
  std::int64_t down = 1, across = 1;  // tiles

  std::int64_t count() const { return down * across; }
};

// Up to `tiles` tiles. The largest takes the time; a tile also packs its rows of A and columns of B, which
// weighs as much as `packing` more rows or columns of C.
TileGrid cut(ProductSize size, std::int64_t tiles) {
  constexpr std::int64_t packing = 16;
  TileGrid best{size.m, size.n};
  if (work_of(size) < least_work) return best;
  const auto cost = [&](const TileGrid& grid) {
    return grid.rows * grid.columns + packing * (grid.rows + grid.columns);
  };
  for (std::int64_t down = 1; down <= tiles; ++down) {
    TileGrid grid{pieces(pieces(size.m, down), tile_unit) * tile_unit,
                  pieces(pieces(size.n, tiles / down), tile_unit) * tile_unit};
    grid.rows = std::min(grid.rows, size.m);
    grid.columns = std::min(grid.columns, size.n);
    grid.down = pieces(size.m, grid.rows);
    grid.across = pieces(size.n, grid.columns);
    if (cost(grid) < cost(best)) best = grid;
  }
  return best;
}

// Element (row, column) of a matrix.
template <class T>
const T* at(const T* matrix, MatrixForm form, std::int64_t row, std::int64_t column) {
  return form.transposed ? matrix + column * form.distance + row : matrix + row * form.distance + column;
}

// An f32 copy of a bf16 panel, dense and as it lies.
Buffer to_f32(const BFloat16* panel, MatrixForm& form, std::int64_t rows, std::int64_t columns) {
  const std::int64_t lines = form.transposed ? columns : rows, length = form.transposed ? rows : columns;
  Buffer copy(static_cast<std::size_t>(rows * columns) * sizeof(float), current_stream(cpu_device));
  auto* to = reinterpret_cast<float*>(copy.data());
  with_simd([&]<std::size_t>() __attribute__((always_inline)) {
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t i = 0; i < length; ++i)
        to[line * length + i] = static_cast<float>(panel[line * form.distance + i]);
  });
  form.distance = length;
  return copy;
}

template <class T>
void multiply_tile(ProductSize size, MatrixForm form_a, const T* a, MatrixForm form_b, const T* b, T* c,
                   std::int64_t ldc) {
  if constexpr (std::same_as<T, BFloat16>) {
    const Buffer wide_a = to_f32(a, form_a, size.m, size.k), wide_b = to_f32(b, form_b, size.k, size.n);
    const Buffer wide_c(static_cast<std::size_t>(size.m * size.n) * sizeof(float),
                        current_stream(cpu_device));
    auto* result = reinterpret_cast<float*>(wide_c.data());
    multiply_tile(size, form_a, reinterpret_cast<const float*>(wide_a.data()), form_b,
                  reinterpret_cast<const float*>(wide_b.data()), result, size.n);
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t row = 0; row < size.m; ++row)
        for (std::int64_t column = 0; column < size.n; ++column)
          c[row * ldc + column] = BFloat16(result[row * size.n + column]);
    });
  } else {
    gemm_tile<T>(form_a.transposed, form_b.transposed, size, T{1}, a, form_a.distance, b, form_b.distance,
                 T{0}, c, ldc);
  }
}

template <class T>
void multiply_cpu(const MatmulPlan& plan, T* c, const T* a, const T* b) {
  const std::int64_t m = plan.size.m, n = plan.size.n, k = plan.size.k;
  const std::int64_t batches = plan.batches.numel, threads = thread_count();
  // Whole batches where there are many, else as many tiles of each as share out evenly.
  const TileGrid grid = cut(plan.size, batches >= 4 * threads ? 1 : threads / std::gcd(batches, threads));
  const double tile_work = work_of({grid.rows, grid.columns, k});
  const auto grain = static_cast<std::int64_t>(std::ceil(least_work / (2 * tile_work)));
  parallel_for(batches * grid.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const auto offset = plan.batches.offsets(task / grid.count());
      const std::int64_t tile = task % grid.count();
      const std::int64_t row = tile / grid.across * grid.rows;
      const std::int64_t column = tile % grid.across * grid.columns;
      const ProductSize size{std::min(grid.rows, m - row), std::min(grid.columns, n - column), k};
      multiply_tile(size, plan.a, at(a + offset[1], plan.a, row, 0), plan.b,
                    at(b + offset[2], plan.b, 0, column), c + offset[0] + row * n + column, n);
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

namespace {

thread_local MatmulPrecision current_precision = MatmulPrecision::fp32;

// How a BLAS can read the matrices of x, if it can.
std::optional<MatrixForm> form_of(const Tensor& x) {
  const int rank = x.rank();
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  const std::int64_t row_step = x.strides()[rank - 2], column_step = x.strides()[rank - 1];
  if (columns <= 1 || column_step == 1) {
    if (rows <= 1) return MatrixForm{false, columns};
    if (row_step >= columns) return MatrixForm{false, row_step};
  }
  if (rows <= 1 || row_step == 1) {
    if (columns <= 1) return MatrixForm{true, rows};
    if (column_step >= rows) return MatrixForm{true, column_step};
  }
  return std::nullopt;
}

// The sizes before the last two, with those two appended.
Shape batch_shape(const Tensor& x, std::initializer_list<std::int64_t> appended = {}) {
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end() - 2);
  sizes.insert(sizes.end(), appended);
  return Shape(std::span<const std::int64_t>(sizes));
}

// Strides of x's leading axes when they are broadcast to `batches`.
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
  if (!form_of(a)) a = a.contiguous();
  if (!form_of(b)) b = b.contiguous();
  const MatmulPlan plan{
      .size = {a.size(-2), b.size(-1), a.size(-1)},
      .a = form_of(a).value(),
      .b = form_of(b).value(),
      .batches = make_layout<3>(
          batches, {batch_strides(out, batches), batch_strides(a, batches), batch_strides(b, batches)})};
  on_backend(device, "matmul", [&]<Backend B>() {
    matmul_kernel<B>(a.dtype(), plan, precision, out.bytes(), a.bytes(), b.bytes(), current_stream(device));
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
