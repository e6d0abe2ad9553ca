#include "tandem/ops/cross_entropy.h"

#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/cross_entropy_kernel.h"
#include "tandem/ops/labels.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using namespace row_ops;

// One row. Returns its contribution to the mean loss.
template <class T>
[[gnu::always_inline]] inline ComputeType<T> cross_entropy_row(const CrossEntropySize& size,
                                                               T* __restrict gradient, const T* __restrict x,
                                                               std::int64_t label) {
  using C = ComputeType<T>;
  C values[block_size], exponentials[block_size];
  C row_max = -std::numeric_limits<C>::infinity();
  for_each_block(
      size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        row_max = std::max(row_max, reduce_block(values, count, row_max, Max{}));
      });
  double sum = 0, sum_of_logits = 0;
  for_each_block(
      size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        for (std::int64_t i = 0; i < count; ++i) values[i] -= row_max;
        for (std::int64_t i = 0; i < count; ++i) exponentials[i] = exponential(values[i]);
        sum += static_cast<double>(reduce_block(exponentials, count, C{0}, Sum{}));
        if (size.label_smoothing > 0)
          sum_of_logits += static_cast<double>(reduce_block(values, count, C{0}, Sum{}));
      });
  const double classes = static_cast<double>(size.classes);
  const auto scale = static_cast<C>(1.0 / static_cast<double>(size.batch_rows));
  const auto label_weight = static_cast<C>(1 - size.label_smoothing);
  const auto class_weight = static_cast<C>(size.label_smoothing / classes);
  const C label_logit = convert<C>(x[label]) - row_max;
  const double log_sum = std::log(sum);
  double loss = (1 - size.label_smoothing) * (log_sum - static_cast<double>(label_logit));
  if (size.label_smoothing > 0) loss += size.label_smoothing * (log_sum - sum_of_logits / classes);
  if (gradient) {
    const auto normalizer = static_cast<C>(1 / sum);
    for_each_block(
        size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
          if (size.classes > block_size) {  // a single block still holds its exponentials
            load(exponentials, x + begin, count);
            for (std::int64_t i = 0; i < count; ++i) exponentials[i] = exponential(exponentials[i] - row_max);
          }
          for (std::int64_t i = 0; i < count; ++i)
            gradient[begin + i] = convert<T>((exponentials[i] * normalizer - class_weight) * scale);
        });
    gradient[label] =
        convert<T>((exponential(label_logit) * normalizer - class_weight - label_weight) * scale);
  }
  return static_cast<C>(loss / static_cast<double>(size.batch_rows));
}

}  // namespace

template <>
void cross_entropy_kernel<Backend::cpu>(DType dtype, DType label_dtype, const CrossEntropySize& size,
                                        std::byte* losses, std::byte* gradient, const std::byte* logits,
                                        const std::byte* labels, StreamView) {
  on_dtype(FloatTypes{}, dtype, "cross_entropy", [&]<class T>() {
    on_dtype(LabelTypes{}, label_dtype, "cross_entropy", [&]<class Label>() {
      for_each_row(
          size.rows, size.classes, [&](std::int64_t row) __attribute__((always_inline)) {
            T* const row_gradient = gradient ? reinterpret_cast<T*>(gradient) + row * size.classes : nullptr;
            reinterpret_cast<ComputeType<T>*>(losses)[row] = cross_entropy_row<T>(
                size, row_gradient, reinterpret_cast<const T*>(logits) + row * size.classes,
                reinterpret_cast<const Label*>(labels)[row]);
          });
    });
  });
}

}  // namespace tandem::detail

namespace tandem {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing) {
  constexpr const char* op = "cross_entropy";
  const Device device = common_device(op, {&logits, &labels});
  check(is_floating(logits.dtype()), "[cross_entropy] expected logits of a floating dtype, got {}",
        name_of(logits.dtype()));
  check(labels.dtype() == DType::i32 || labels.dtype() == DType::i64,
        "[cross_entropy] expected labels of i32 or i64, got {}", name_of(labels.dtype()));
  check(logits.rank() == 2 && labels.rank() == 1 && logits.size(0) == labels.size(0),
        "[cross_entropy] expected logits (n, classes) and labels (n), got {} and {}",
        logits.shape().to_string(), labels.shape().to_string());
  const ShardPart* const part = detail::shard_part();
  check(logits.size(1) > 0 && (part || logits.size(0) > 0),
        "[cross_entropy] expected at least one row and one class, got logits {}", logits.shape().to_string());
  check(label_smoothing >= 0 && label_smoothing <= 1,
        "[cross_entropy] expected a label smoothing from 0 to 1, got {}", label_smoothing);
  const detail::CrossEntropySize size{.rows = logits.size(0),
                                      .classes = logits.size(1),
                                      .label_smoothing = label_smoothing,
                                      .batch_rows = detail::batch_size_of(part, logits.size(0), op)};
  detail::check_labels(op, labels, size.classes);
  const DType compute = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor x = logits.detach().contiguous(), y = labels.contiguous();
  Tensor losses = Tensor::empty({size.rows}, compute, device);
  const bool needs_gradient = wants_grad(logits);
  Tensor gradient = needs_gradient ? Tensor::empty(x.shape(), x.dtype(), device) : Tensor();
  if (size.rows > 0)
    on_backend(device, op, [&]<Backend B>() {
      detail::cross_entropy_kernel<B>(x.dtype(), y.dtype(), size, losses.bytes(), gradient.bytes(), x.bytes(),
                                      y.bytes(), current_stream(device));
    });
  Tensor loss = cast(sum(losses), logits.dtype());
  if (needs_gradient)
    record(loss, op, {&logits}, [gradient, part](const Tensor& g) {
      detail::check_scope(part, "cross_entropy");
      return Gradients{multiply(gradient, g)};
    });
  return loss;
}

}  // namespace tandem
