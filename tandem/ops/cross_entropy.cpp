#include "tandem/ops/cross_entropy.h"

#include <cmath>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/cross_entropy_kernel.h"
#include "tandem/ops/gather.h"
#include "tandem/ops/labels.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

using namespace row_ops;

// The values that all rows share.
template <class C>
struct SharedTerms {
  const C* weights = nullptr;
  double mean_weight = 1;  // of the classes
  double total = 1;        // what the sum over the rows is divided by

  explicit SharedTerms(const CrossEntropyTerms& terms)
      : weights(reinterpret_cast<const C*>(terms.class_weights)),
        total(static_cast<double>(terms.batch_rows)) {
    if (!weights) return;
    total = static_cast<double>(*reinterpret_cast<const C*>(terms.total_weight));
    double sum = 0;
    for (std::int64_t i = 0; i < terms.classes; ++i) sum += static_cast<double>(weights[i]);
    mean_weight = sum / static_cast<double>(terms.classes);
  }
};

// One row. Returns its contribution to the mean loss.
template <class T>
[[gnu::always_inline]] inline ComputeType<T> cross_entropy_row(const CrossEntropyTerms& terms,
                                                               const SharedTerms<ComputeType<T>>& shared,
                                                               T* __restrict gradient, const T* __restrict x,
                                                               std::int64_t label) {
  using C = ComputeType<T>;
  const C* const weights = shared.weights;
  const double smoothing = terms.label_smoothing;
  C values[block_size], exponentials[block_size];
  C row_max = -std::numeric_limits<C>::infinity();
  for_each_block(
      terms.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        row_max = std::max(row_max, reduce_block(values, count, row_max, Max{}));
      });
  double sum = 0, sum_of_logits = 0;
  for_each_block(
      terms.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
        load(values, x + begin, count);
        for (std::int64_t i = 0; i < count; ++i) values[i] -= row_max;
        for (std::int64_t i = 0; i < count; ++i) exponentials[i] = exponential(values[i]);
        sum += static_cast<double>(reduce_block(exponentials, count, C{0}, Sum{}));
        if (smoothing == 0) return;
        if (weights)
          for (std::int64_t i = 0; i < count; ++i) values[i] *= weights[begin + i];
        sum_of_logits += static_cast<double>(reduce_block(values, count, C{0}, Sum{}));
      });
  const double classes = static_cast<double>(terms.classes);
  const double own_weight = weights ? static_cast<double>(weights[label]) : 1;
  const C label_logit = convert<C>(x[label]) - row_max;
  const double log_sum = std::log(sum), cross_entropy = log_sum - static_cast<double>(label_logit);
  const FocalFactors<double> focal = focal_factors(cross_entropy, terms.focal_gamma);
  double loss = (1 - smoothing) * own_weight * focal.loss * cross_entropy;
  if (smoothing > 0) loss += smoothing * (shared.mean_weight * log_sum - sum_of_logits / classes);
  if (gradient) {
    const double label_part = (1 - smoothing) * own_weight * focal.gradient;
    const bool is_plain = !weights && terms.focal_gamma == 0;
    const auto normalizer =
        static_cast<C>((is_plain ? 1 : label_part + smoothing * shared.mean_weight) / sum);
    const auto scale = static_cast<C>(shared.total > 0 ? 1 / shared.total : 0);
    const auto label_weight = static_cast<C>(label_part);
    const auto class_weight = static_cast<C>(smoothing / classes);
    const auto own_class_weight = static_cast<C>(smoothing / classes * own_weight);
    for_each_block(
        terms.classes, [&](std::int64_t begin, std::int64_t count) __attribute__((always_inline)) {
          if (terms.classes > block_size) {  // a single block still holds its exponentials
            load(exponentials, x + begin, count);
            for (std::int64_t i = 0; i < count; ++i) exponentials[i] = exponential(exponentials[i] - row_max);
          }
          if (weights)
            for (std::int64_t i = 0; i < count; ++i)
              gradient[begin + i] =
                  convert<T>((exponentials[i] * normalizer - class_weight * weights[begin + i]) * scale);
          else
            for (std::int64_t i = 0; i < count; ++i)
              gradient[begin + i] = convert<T>((exponentials[i] * normalizer - class_weight) * scale);
        });
    gradient[label] =
        convert<T>((exponential(label_logit) * normalizer - own_class_weight - label_weight) * scale);
  }
  return static_cast<C>(shared.total > 0 ? loss / shared.total : 0);
}

}  // namespace

template <>
void cross_entropy_kernel<Backend::cpu>(DType dtype, DType label_dtype, const CrossEntropyTerms& terms,
                                        std::byte* losses, std::byte* gradient, const std::byte* logits,
                                        const std::byte* labels, StreamView) {
  on_dtype(FloatTypes{}, dtype, "cross_entropy", [&]<class T>() {
    const SharedTerms<ComputeType<T>> shared(terms);
    on_dtype(LabelTypes{}, label_dtype, "cross_entropy", [&]<class Label>() {
      for_each_row(
          terms.rows, terms.classes, [&](std::int64_t row) __attribute__((always_inline)) {
            T* const row_gradient = gradient ? reinterpret_cast<T*>(gradient) + row * terms.classes : nullptr;
            reinterpret_cast<ComputeType<T>*>(losses)[row] = cross_entropy_row<T>(
                terms, shared, row_gradient, reinterpret_cast<const T*>(logits) + row * terms.classes,
                reinterpret_cast<const Label*>(labels)[row]);
          });
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

// In the compute dtype, on the device of the logits.
Tensor checked_weights(const Tensor& weights, const Tensor& logits, DType compute) {
  common_device("cross_entropy", {&logits, &weights});
  check(is_floating(weights.dtype()) && weights.rank() == 1 && weights.size(0) == logits.size(1),
        "[cross_entropy] expected {} class weights of a floating dtype, got {} {}", logits.size(1),
        name_of(weights.dtype()), weights.shape().to_string());
  return cast(weights.detach(), compute).contiguous();
}

// What the sum over the rows is divided by.
Tensor total_weight_of(const CrossEntropyOptions& options, const Tensor& weights, const Tensor& labels) {
  const Tensor& given = options.total_weight;
  if (given.defined()) {
    common_device("cross_entropy", {&weights, &given});
    check(is_floating(given.dtype()) && given.numel() == 1,
          "[cross_entropy] expected a total weight of one element and a floating dtype, got {} {}",
          name_of(given.dtype()), given.shape().to_string());
    return cast(given.detach(), weights.dtype()).contiguous();
  }
  check(detail::shard_part() == nullptr,
        "[cross_entropy] expected total_weight with class weights in a batch that is cut into shards");
  return sum(gather_rows(weights, labels));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing) {
  return cross_entropy(logits, labels, CrossEntropyOptions{.label_smoothing = label_smoothing});
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
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
  const auto& [label_smoothing, class_weights, focal_gamma, total_weight] = options;
  check(label_smoothing >= 0 && label_smoothing <= 1,
        "[cross_entropy] expected a label smoothing from 0 to 1, got {}", label_smoothing);
  check(std::isfinite(focal_gamma) && focal_gamma >= 0,
        "[cross_entropy] expected a finite focal gamma of 0 or more, got {}", focal_gamma);
  check(focal_gamma == 0 || label_smoothing == 0,
        "[cross_entropy] expected label smoothing or a focal gamma, got {} and {}", label_smoothing,
        focal_gamma);
  check(class_weights.defined() || !total_weight.defined(),
        "[cross_entropy] expected class weights with a total weight, got none");
  detail::check_labels(op, labels, logits.size(1));
  const DType compute = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor x = logits.detach().contiguous(), y = labels.contiguous();
  const Tensor weights = class_weights.defined() ? checked_weights(class_weights, x, compute) : Tensor();
  const Tensor total = weights.defined() ? total_weight_of(options, weights, y) : Tensor();
  const detail::CrossEntropyTerms terms{.rows = logits.size(0),
                                        .classes = logits.size(1),
                                        .label_smoothing = label_smoothing,
                                        .focal_gamma = focal_gamma,
                                        .batch_rows = detail::batch_size_of(part, logits.size(0), op),
                                        .class_weights = weights.bytes(),
                                        .total_weight = total.bytes()};
  Tensor losses = Tensor::empty({terms.rows}, compute, device);
  const bool needs_gradient = wants_grad(logits);
  Tensor gradient = needs_gradient ? Tensor::empty(x.shape(), x.dtype(), device) : Tensor();
  if (terms.rows > 0)
    on_backend(device, op, [&]<Backend B>() {
      detail::cross_entropy_kernel<B>(x.dtype(), y.dtype(), terms, losses.bytes(), gradient.bytes(),
                                      x.bytes(), y.bytes(), current_stream(device));
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
