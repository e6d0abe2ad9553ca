#include "tandem/ops/softmax.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/ops/softmax_kernel.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using namespace row_ops;

template <class T>
[[gnu::always_inline]] inline void softmax_row(SoftmaxKind kind, std::int64_t columns, T* __restrict out,
                                               const T* __restrict x) {
  using C = ComputeType<T>;
  C values[block_size], exponentials[block_size];
  C row_max = -std::numeric_limits<C>::infinity();
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        row_max = std::max(row_max, reduce_block(values, count, row_max, Max{}));
      });
  double sum = 0;
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        for (std::int64_t i = 0; i < count; ++i) exponentials[i] = exponential(values[i] - row_max);
        sum += static_cast<double>(reduce_block(exponentials, count, C{0}, Sum{}));
        // Storing bf16 exponentials in the output would round twice, so a second pass recomputes them.
        if constexpr (std::same_as<T, C>)
          if (kind == SoftmaxKind::softmax)
            for (std::int64_t i = 0; i < count; ++i) out[begin + i] = exponentials[i];
      });
  const auto scale = static_cast<C>(1 / sum), shift = static_cast<C>(std::log(sum));
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        if (kind == SoftmaxKind::log_softmax) {
          for (std::int64_t i = begin; i < begin + count; ++i)
            out[i] = convert<T>((convert<C>(x[i]) - row_max) - shift);
        } else if constexpr (std::same_as<T, C>) {
          for (std::int64_t i = begin; i < begin + count; ++i) out[i] *= scale;
        } else {
          for (std::int64_t i = 0; i < count; ++i)
            exponentials[i] = exponential(convert<C>(x[begin + i]) - row_max) * scale;
          for (std::int64_t i = 0; i < count; ++i) out[begin + i] = convert<T>(exponentials[i]);
        }
      });
}

// softmax: dx = y · (g − Σ g·y); log-softmax: dx = g − exp(y) · Σ g.
template <class T>
[[gnu::always_inline]] inline void gradient_row(SoftmaxKind kind, std::int64_t columns, T* __restrict dx,
                                                const T* __restrict y, const T* __restrict g) {
  using C = ComputeType<T>;
  C values[block_size];
  double sum = 0;
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, g + begin, count);
        if (kind == SoftmaxKind::softmax)
          for (std::int64_t i = 0; i < count; ++i) values[i] *= convert<C>(y[begin + i]);
        sum += static_cast<double>(reduce_block(values, count, C{0}, Sum{}));
      });
  const auto total = static_cast<C>(sum);
  for_each_block(
      columns, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, y + begin, count);
        if (kind == SoftmaxKind::softmax) {
          for (std::int64_t i = 0; i < count; ++i)
            dx[begin + i] = convert<T>(values[i] * (convert<C>(g[begin + i]) - total));
        } else {
          for (std::int64_t i = 0; i < count; ++i) values[i] = exponential(values[i]);
          for (std::int64_t i = 0; i < count; ++i)
            dx[begin + i] = convert<T>(convert<C>(g[begin + i]) - values[i] * total);
        }
      });
}

}  // namespace

template <>
void softmax_kernel<Backend::cpu>(SoftmaxKind kind, DType dtype, std::int64_t rows, std::int64_t columns,
                                  std::byte* out, const std::byte* x, StreamView) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    for_each_row(
        rows, columns, [&](std::int64_t row) __attribute__((always_inline)) {
          softmax_row(kind, columns, reinterpret_cast<T*>(out) + row * columns,
                      reinterpret_cast<const T*>(x) + row * columns);
        });
  });
}

template <>
void softmax_gradient_kernel<Backend::cpu>(SoftmaxKind kind, DType dtype, std::int64_t rows,
                                           std::int64_t columns, std::byte* dx, const std::byte* y,
                                           const std::byte* g, StreamView) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    for_each_row(
        rows, columns, [&](std::int64_t row) __attribute__((always_inline)) {
          gradient_row(kind, columns, reinterpret_cast<T*>(dx) + row * columns,
                       reinterpret_cast<const T*>(y) + row * columns,
                       reinterpret_cast<const T*>(g) + row * columns);
        });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor gradient(detail::SoftmaxKind kind, const char* op, const Tensor& y, const Tensor& gradient_of_y) {
  const Tensor g = gradient_of_y.contiguous();
  Tensor dx = Tensor::empty(y.shape(), y.dtype(), y.device());
  const std::int64_t columns = y.size(-1);
  if (y.numel() > 0)
    on_backend(y.device(), op, [&]<Backend B>() {
      detail::softmax_gradient_kernel<B>(kind, y.dtype(), y.numel() / columns, columns, dx.bytes(), y.bytes(),
                                         g.bytes(), current_stream(y.device()));
    });
  return dx;
}

Tensor compute(detail::SoftmaxKind kind, const char* op, const Tensor& x, int axis) {
  const Device device = common_device(op, {&x});
  check(is_floating(x.dtype()), "[{}] expected a floating dtype, got {}", op, name_of(x.dtype()));
  check(x.rank() >= 1, "[{}] expected at least one axis, got shape {}", op, x.shape());
  if (normalize_axis(axis, x.rank(), op) != x.rank() - 1)
    return compute(kind, op, x.transpose(axis, -1), -1).transpose(axis, -1).contiguous();
  const Tensor rows = x.detach().contiguous();
  const std::int64_t columns = x.size(-1);
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  if (x.numel() > 0)
    on_backend(device, op, [&]<Backend B>() {
      detail::softmax_kernel<B>(kind, x.dtype(), x.numel() / columns, columns, out.bytes(), rows.bytes(),
                                current_stream(device));
    });
  if (wants_grad(x))
    record(out, op, {&x},
           [kind, op, y = out.detach()](const Tensor& g) { return Gradients{gradient(kind, op, y, g)}; });
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  return compute(detail::SoftmaxKind::softmax, "softmax", x, axis);
}

Tensor log_softmax(const Tensor& x, int axis) {
  return compute(detail::SoftmaxKind::log_softmax, "log_softmax", x, axis);
}

}  // namespace tandem
