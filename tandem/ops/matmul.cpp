#include "tandem/ops/matmul.h"

#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/matmul_kernel.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

template <class T>
void multiply(GemmSize size, const T* a, MatrixLayout layout_a, const T* b, MatrixLayout layout_b, T* c) {
  gemm<T>({.size = size,
           .a = {a, layout_a.leading_dimension, layout_a.transposed},
           .b = {b, layout_b.leading_dimension, layout_b.transposed},
           .c = c,
           .leading_dimension_c = size.n});
}

// A dense f32 copy of a bf16 matrix in the same order; updates `layout` to describe the copy.
Buffer to_f32(const BFloat16* matrix, MatrixLayout& layout, std::int64_t rows, std::int64_t columns) {
  const std::int64_t stored_rows = layout.transposed ? columns : rows;
  const std::int64_t stored_columns = layout.transposed ? rows : columns;
  Buffer copy = make_scratch<float>(rows * columns);
  cast_kernel<Backend::cpu>(
      DType::f32, DType::bf16,
      make_layout<2>(Shape{stored_rows, stored_columns}, {Dims{stored_columns, std::int64_t{1}},
                                                          Dims{layout.leading_dimension, std::int64_t{1}}}),
      copy.data(), reinterpret_cast<const std::byte*>(matrix), current_stream(cpu_device));
  layout.leading_dimension = stored_columns;
  return copy;
}

void multiply(GemmSize size, const BFloat16* a, MatrixLayout layout_a, const BFloat16* b,
              MatrixLayout layout_b, BFloat16* c) {
  const Buffer wide_a = to_f32(a, layout_a, size.m, size.k), wide_b = to_f32(b, layout_b, size.k, size.n);
  const Buffer wide_c = make_scratch<float>(size.m * size.n);
  multiply(size, as<const float>(wide_a), layout_a, as<const float>(wide_b), layout_b, as<float>(wide_c));
  to_bf16(reinterpret_cast<std::byte*>(c), wide_c, size.m * size.n);
}

// Many small products are divided among the threads; otherwise the threads share each of them.
template <class T>
void multiply_cpu(const MatmulPlan& plan, T* c, const T* a, const T* b) {
  const std::int64_t batches = plan.batches.numel;
  const auto multiply_batches = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t batch = begin; batch < end; ++batch) {
      const auto offset = plan.batches.offsets(batch);
      multiply(plan.size, a + offset[1], plan.a, b + offset[2], plan.b, c + offset[0]);
    }
  };
  constexpr double min_work = 25'000;  // multiply-adds of a thread
  const double work =
      static_cast<double>(plan.size.m) * static_cast<double>(plan.size.n) * static_cast<double>(plan.size.k);
  if (batches >= 2 * thread_count())
    parallel_for(batches, static_cast<std::int64_t>(std::ceil(min_work / work)), multiply_batches);
  else
    multiply_batches(0, batches);
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

constexpr std::pair<const char*, MatmulPrecision> precisions[] = {
    {"fp32", MatmulPrecision::fp32}, {"tf32", MatmulPrecision::tf32}, {"bf16", MatmulPrecision::bf16}};

// How gemm() can read the matrices of x in place, if it can.
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

Shape joined(std::span<const std::int64_t> leading, std::initializer_list<std::int64_t> appended) {
  Dims sizes = Dims::filled(static_cast<int>(leading.size() + appended.size()), 0);
  int axis = 0;
  for (const std::int64_t size : leading) sizes[axis++] = size;
  for (const std::int64_t size : appended) sizes[axis++] = size;
  return Shape(sizes);
}

// The sizes of the leading axes, without the last two, followed by `appended`.
Shape batch_shape(const Tensor& x, std::initializer_list<std::int64_t> appended = {}) {
  return joined({x.shape().begin(), x.shape().end() - 2}, appended);
}

// The strides of the leading axes of x, broadcast to `batches`.
Dims batch_strides(const Tensor& x, const Shape& batches) {
  Dims strides = Dims::filled(batches.rank(), 0);
  const int added = batches.rank() - (x.rank() - 2);
  for (int axis = 0; axis < x.rank() - 2; ++axis)
    if (x.shape()[axis] != 1) strides[axis + added] = x.strides()[axis];
  return strides;
}

Tensor compute(const Tensor& a, const Tensor& b, MatmulPrecision precision) {
  const Shape batches = broadcast_shapes(batch_shape(a), batch_shape(b), "matmul");
  const Shape shape = joined({batches.begin(), batches.end()}, {a.size(-2), b.size(-1)});
  Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  detail::multiply_into(out, a, b, precision);
  return out;
}

}  // namespace

void detail::multiply_into(const Tensor& out, Tensor a, Tensor b, MatmulPrecision precision) {
  if (a.size(-1) == 0) clear(out);
  if (a.size(-1) == 0 || out.numel() == 0) return;
  if (!matrix_layout(a)) a = a.contiguous();
  if (!matrix_layout(b)) b = b.contiguous();
  const Shape batches = batch_shape(out);
  const MatmulPlan plan{
      .size = {a.size(-2), b.size(-1), a.size(-1)},
      .a = matrix_layout(a).value(),
      .b = matrix_layout(b).value(),
      .batches = make_layout<3>(
          batches, {batch_strides(out, batches), batch_strides(a, batches), batch_strides(b, batches)})};
  on_backend(out.device(), "matmul", [&]<Backend B>() {
    matmul_kernel<B>(a.dtype(), plan, precision, out.bytes(), a.bytes(), b.bytes(),
                     current_stream(out.device()));
  });
}

const char* name_of(MatmulPrecision precision) {
  for (const auto& [name, value] : precisions)
    if (value == precision) return name;
  expect(false);
  return "";
}

MatmulPrecision parse_precision(std::string_view name) {
  for (const auto& [own, value] : precisions)
    if (name == own) return value;
  fail("[matmul] expected one of fp32, tf32, bf16, got '{}'", name);
}

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
        "[matmul] expected matrices or batches of shapes (…, m, k) and (…, k, n), got {} and {}", a.shape(),
        b.shape());
  if (a.rank() > 2 && b.rank() == 2 && a.is_contiguous()) {  // the rows of all batches form one matrix
    const std::int64_t rows = batch_shape(a, {a.size(-2)}).numel();
    return matmul(a.reshape({rows, a.size(-1)}), b).reshape(batch_shape(a, {a.size(-2), b.size(-1)}));
  }
  const ShardPart* const part = detail::vendor_part(a.device());
  check(
      !part,
      "[matmul] expected linear() in a batch of {} shards on CUDA, got matmul(), whose bits would depend on "
      "which of the shards are computed here",
      part ? part->shards : 0);
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
