#include "tandem/ops/cross_entropy.h"

#include <limits>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/row_blocks.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

using namespace blocks;

using LabelTypes = TypeList<std::int32_t, std::int64_t>;

// One row; `scale` is 1 / n. Returns the row's share of the loss.
template <class T>
[[gnu::always_inline]] inline ComputeType<T> cross_entropy_row(const CrossEntropySize& size,
                                                               T* __restrict gradient, const T* __restrict x,
                                                               std::int64_t label) {
  using C = ComputeType<T>;
  C values[block], powers[block];
  C greatest = -std::numeric_limits<C>::infinity();
  for_each_block(
      size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        greatest = std::max(greatest, fold_block(values, count, greatest, Greater{}));
      });
  double sum = 0, sum_of_logits = 0;
  for_each_block(
      size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        for (std::int64_t i = 0; i < count; ++i) values[i] -= greatest;
        for (std::int64_t i = 0; i < count; ++i) powers[i] = exponential(values[i]);
        sum += static_cast<double>(fold_block(powers, count, C{0}, Plus{}));
        if (size.label_smoothing > 0)
          sum_of_logits += static_cast<double>(fold_block(values, count, C{0}, Plus{}));
      });
  const double classes = static_cast<double>(size.classes);
  const auto scale = static_cast<C>(1.0 / static_cast<double>(size.rows));
  const auto on = static_cast<C>(1 - size.label_smoothing);
  const auto off = static_cast<C>(size.label_smoothing / classes);
  const C at_label = convert<C>(x[label]) - greatest;
  const double log_sum = std::log(sum);
  double loss = (1 - size.label_smoothing) * (log_sum - static_cast<double>(at_label));
  if (size.label_smoothing > 0) loss += size.label_smoothing * (log_sum - sum_of_logits / classes);
  if (gradient) {
    const auto normal = static_cast<C>(1 / sum);
    for_each_block(
        size.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
          if (size.classes > block) {  // a single block still holds its powers
            load(powers, x + begin, count);
            for (std::int64_t i = 0; i < count; ++i) powers[i] = exponential(powers[i] - greatest);
          }
          for (std::int64_t i = 0; i < count; ++i)
            gradient[begin + i] = convert<T>((powers[i] * normal - off) * scale);
        });
    gradient[label] = convert<T>((exponential(at_label) * normal - off - on) * scale);
  }
  return static_cast<C>(loss / static_cast<double>(size.rows));
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
            T* const to = gradient ? reinterpret_cast<T*>(gradient) + row * size.classes : nullptr;
            reinterpret_cast<ComputeType<T>*>(losses)[row] =
                cross_entropy_row<T>(size, to, reinterpret_cast<const T*>(logits) + row * size.classes,
                                     reinterpret_cast<const Label*>(labels)[row]);
          });
    });
  });
}

void check_labels(const char* op, const Tensor& labels, std::int64_t classes) {
  if (labels.device().is_cuda()) return;
  on_dtype(LabelTypes{}, labels.dtype(), op, [&]<class Label>() {
    const Tensor dense = labels.contiguous();
    const Label* values = dense.data<Label>();
    for (std::int64_t i = 0; i < dense.numel(); ++i)
      check(values[i] >= 0 && values[i] < classes, "[{}] expected labels from 0 to {}, got {} at position {}",
            op, classes - 1, values[i], i);
  });
}

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
  check(logits.numel() > 0, "[cross_entropy] expected at least one row and one class, got logits {}",
        logits.shape().to_string());
  check(label_smoothing >= 0 && label_smoothing <= 1,
        "[cross_entropy] expected a label smoothing from 0 to 1, got {}", label_smoothing);
  const CrossEntropySize size{
      .rows = logits.size(0), .classes = logits.size(1), .label_smoothing = label_smoothing};
  check_labels(op, labels, size.classes);
  const DType compute = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor x = logits.detach().contiguous(), y = labels.contiguous();
  const Tensor losses = Tensor::empty({size.rows}, compute, device);
  const bool differentiate = wants_grad(logits);
  const Tensor gradient = differentiate ? Tensor::empty(x.shape(), x.dtype(), device) : Tensor();
  on_backend(device, op, [&]<Backend B>() {
    cross_entropy_kernel<B>(x.dtype(), y.dtype(), size, losses.bytes(), gradient.bytes(), x.bytes(),
                            y.bytes(), current_stream(device));
  });
  Tensor loss = cast(sum(losses), logits.dtype());
  if (differentiate)
    record(loss, op, {&logits}, [gradient](const Tensor& g) { return Gradients{multiply(gradient, g)}; });
  return loss;
}

}  // namespace tandem
