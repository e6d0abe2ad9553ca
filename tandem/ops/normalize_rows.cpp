#include "tandem/ops/normalize_rows.h"

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/normalize_rows_kernel.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using namespace row_ops;

// The scalar product of two rows, in f64.
template <class T>
[[gnu::always_inline]] inline double dot(const T* a, const T* b, std::int64_t columns) {
  double products[block_size], sum = 0;
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < count; ++i)
          products[i] = convert<double>(a[begin + i]) * convert<double>(b[begin + i]);
        sum += reduce_block(products, count, 0.0, Sum{});
      });
  return sum;
}

}  // namespace

template <>
void normalize_rows_kernel<Backend::cpu>(DType dtype, std::int64_t rows, std::int64_t columns, std::byte* out,
                                         std::byte* norms, const std::byte* x, StreamView) {
  on_dtype(FloatTypes{}, dtype, "normalize_rows", [&]<class T>() {
    using C = ComputeType<T>;
    for_each_row(
        rows, std::max<std::int64_t>(columns, 1), [&](std::int64_t row) __attribute__((always_inline)) {
          const T* const from = reinterpret_cast<const T*>(x) + row * columns;
          T* const to = reinterpret_cast<T*>(out) + row * columns;
          const double length = std::sqrt(dot(from, from, columns));
          const bool is_short = length < min_row_norm;  // false for NaN, which propagates
          const auto norm = static_cast<C>(is_short ? 0 : length);
          reinterpret_cast<C*>(norms)[row] = norm;
          for (std::int64_t i = 0; i < columns; ++i)
            to[i] = convert<T>(is_short ? C{0} : convert<C>(from[i]) / norm);
        });
  });
}

template <>
void normalize_rows_gradient_kernel<Backend::cpu>(DType dtype, std::int64_t rows, std::int64_t columns,
                                                  std::byte* dx, const std::byte* z, const std::byte* norms,
                                                  const std::byte* g, StreamView) {
  on_dtype(FloatTypes{}, dtype, "normalize_rows", [&]<class T>() {
    using C = ComputeType<T>;
    for_each_row(
        rows, std::max<std::int64_t>(columns, 1), [&](std::int64_t row) __attribute__((always_inline)) {
          const T* const unit = reinterpret_cast<const T*>(z) + row * columns;
          const T* const upstream = reinterpret_cast<const T*>(g) + row * columns;
          T* const to = reinterpret_cast<T*>(dx) + row * columns;
          const C norm = reinterpret_cast<const C*>(norms)[row];
          const auto along = static_cast<C>(dot(unit, upstream, columns));
          for (std::int64_t i = 0; i < columns; ++i)
            to[i] =
                convert<T>(norm == 0 ? C{0} : (convert<C>(upstream[i]) - convert<C>(unit[i]) * along) / norm);
        });
  });
}

NormalizedRows normalize_rows_with_norms(const Tensor& x) {
  const Device device = x.device();
  const DType compute = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  NormalizedRows result{.rows = Tensor::empty(x.shape(), x.dtype(), device),
                        .norms = Tensor::empty({x.size(0)}, compute, device)};
  if (x.size(0) > 0)
    on_backend(device, "normalize_rows", [&]<Backend B>() {
      normalize_rows_kernel<B>(x.dtype(), x.size(0), x.size(1), result.rows.bytes(), result.norms.bytes(),
                               x.bytes(), current_stream(device));
    });
  return result;
}

Tensor normalize_rows_gradient(const NormalizedRows& normalized, const Tensor& g) {
  const Tensor& z = normalized.rows;
  const Tensor upstream = g.contiguous();
  Tensor dx = Tensor::empty(z.shape(), z.dtype(), z.device());
  if (z.size(0) > 0)
    on_backend(z.device(), "normalize_rows", [&]<Backend B>() {
      normalize_rows_gradient_kernel<B>(z.dtype(), z.size(0), z.size(1), dx.bytes(), z.bytes(),
                                        normalized.norms.bytes(), upstream.bytes(),
                                        current_stream(z.device()));
    });
  return dx;
}

}  // namespace tandem::detail

namespace tandem {

Tensor normalize_rows(const Tensor& x) {
  common_device("normalize_rows", {&x});
  check(is_floating(x.dtype()), "[normalize_rows] expected a floating dtype, got {}", name_of(x.dtype()));
  check(x.rank() == 2, "[normalize_rows] expected a matrix (n, d), got {}", x.shape().to_string());
  const detail::NormalizedRows normalized = detail::normalize_rows_with_norms(x.detach().contiguous());
  Tensor out = normalized.rows;
  if (wants_grad(x))
    record(out, "normalize_rows", {&x}, [normalized](const Tensor& g) {
      return Gradients{detail::normalize_rows_gradient(normalized, g)};
    });
  return out;
}

}  // namespace tandem
