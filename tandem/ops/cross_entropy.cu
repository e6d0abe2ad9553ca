// Cross-entropy on CUDA: one warp per row of up to 1024 classes, which reads the row once and keeps it in
// registers; one block per longer row.
#include "tandem/ops/cross_entropy_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/labels.h"
#include "tandem/ops/row_kernel.cuh"

namespace tandem::detail {
namespace {

using namespace row_ops;

// Reductions of one row.
template <class C>
struct RowStatistics {
  C max;
  C sum;            // of exp(x − max)
  C sum_of_logits;  // of weight · (x − max)
  C sum_of_weights;
};

// The loss of a row, and the factors of its gradient.
template <class C>
struct RowTerms {
  C loss;
  C share;       // of the probabilities
  C label_part;  // subtracted at the label
  C scale;
};

template <class C>
struct Target {
  C label_weight;  // 1 − smoothing
  C class_weight;  // smoothing / classes
  C scale;         // 1 / n
  C classes;
  C focal_gamma;
  const C* weights;       // of the classes, or null
  const C* total_weight;  // replaces n, or null

  __device__ C weight(std::int64_t column) const { return weights ? weights[column] : C{1}; }

  __device__ RowTerms<C> terms(C label_logit, std::int64_t label, const RowStatistics<C>& row) const {
    const C log_sum = logarithm(row.sum), cross_entropy = log_sum - (label_logit - row.max);
    const FocalFactors<C> focal = focal_factors(cross_entropy, focal_gamma);
    const C own_weight = weight(label), mean_weight = weights ? row.sum_of_weights / classes : C{1};
    RowTerms<C> terms{.loss = label_weight * own_weight * focal.loss * cross_entropy,
                      .share = 1,
                      .label_part = label_weight * own_weight * focal.gradient,
                      .scale = scale};
    if (class_weight > 0)
      terms.loss += (1 - label_weight) * (mean_weight * log_sum - row.sum_of_logits / classes);
    if (weights || focal_gamma != 0) terms.share = terms.label_part + (1 - label_weight) * mean_weight;
    if (total_weight) terms.scale = *total_weight > 0 ? 1 / *total_weight : C{0};
    terms.loss = terms.scale == 0 ? C{0} : terms.loss * terms.scale;
    return terms;
  }
  __device__ C gradient(C x, std::int64_t column, const RowStatistics<C>& row, const RowTerms<C>& terms,
                        bool is_label) const {
    const C p = exponential(x - row.max) / row.sum;
    return (p * terms.share - class_weight * weight(column) - (is_label ? terms.label_part : C{0})) *
           terms.scale;
  }
};

template <class C>
__device__ C not_a_number() {
  return static_cast<C>(NAN);
}

template <int values_per_thread, class T, class Label>
__global__ void __launch_bounds__(threads)
    warp_cross_entropy(std::int64_t rows, int classes, Target<ComputeType<T>> target,
                       ComputeType<T>* __restrict__ losses, T* __restrict__ gradient, const T* __restrict__ x,
                       const Label* __restrict__ labels) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp_size;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp_size);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
       row < rows; row += step) {
    const std::int64_t label = labels[row];
    const bool is_valid = label >= 0 && label < classes;
    C value[values_per_thread];
    RowStatistics<C> statistics{negative_infinity<C>(), 0, 0, 0};
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      value[i] = column < classes ? convert<C>(x[row * classes + column]) : negative_infinity<C>();
      statistics.max = Max{}(statistics.max, value[i]);
    }
    statistics.max = warp_reduce(Max{}, statistics.max);
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column >= classes) continue;
      const C weight = target.weight(column);
      statistics.sum += exponential(value[i] - statistics.max);
      statistics.sum_of_logits += weight * (value[i] - statistics.max);
      statistics.sum_of_weights += weight;
    }
    statistics.sum = warp_reduce(Sum{}, statistics.sum);
    statistics.sum_of_logits = warp_reduce(Sum{}, statistics.sum_of_logits);
    if (target.weights) statistics.sum_of_weights = warp_reduce(Sum{}, statistics.sum_of_weights);
    const std::int64_t known = is_valid ? label : 0;
    const RowTerms<C> terms = target.terms(convert<C>(x[row * classes + known]), known, statistics);
    if (lane == 0) losses[row] = is_valid ? terms.loss : not_a_number<C>();
    if (!gradient) continue;
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column < classes)
        gradient[row * classes + column] =
            convert<T>(is_valid ? target.gradient(value[i], column, statistics, terms, column == label)
                                : not_a_number<C>());
    }
  }
}

template <class T, class Label>
__global__ void __launch_bounds__(threads)
    block_cross_entropy(std::int64_t rows, std::int64_t classes, Target<ComputeType<T>> target,
                        ComputeType<T>* __restrict__ losses, T* __restrict__ gradient,
                        const T* __restrict__ x, const Label* __restrict__ labels) {
  using C = ComputeType<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * classes;
    const std::int64_t label = labels[row];
    const bool is_valid = label >= 0 && label < classes;
    RowStatistics<C> statistics{negative_infinity<C>(), 0, 0, 0};
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      statistics.max = Max{}(statistics.max, convert<C>(from[i]));
    statistics.max = block_reduce(Max{}, statistics.max);
    for (std::int64_t i = threadIdx.x; i < classes; i += threads) {
      const C value = convert<C>(from[i]) - statistics.max, weight = target.weight(i);
      statistics.sum += exponential(value);
      statistics.sum_of_logits += weight * value;
      statistics.sum_of_weights += weight;
    }
    statistics.sum = block_reduce(Sum{}, statistics.sum);
    statistics.sum_of_logits = block_reduce(Sum{}, statistics.sum_of_logits);
    if (target.weights) statistics.sum_of_weights = block_reduce(Sum{}, statistics.sum_of_weights);
    const std::int64_t known = is_valid ? label : 0;
    const RowTerms<C> terms = target.terms(convert<C>(from[known]), known, statistics);
    if (threadIdx.x == 0) losses[row] = is_valid ? terms.loss : not_a_number<C>();
    if (!gradient) continue;
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      gradient[row * classes + i] =
          convert<T>(is_valid ? target.gradient(convert<C>(from[i]), i, statistics, terms, i == label)
                              : not_a_number<C>());
  }
}

}  // namespace

template <>
void cross_entropy_kernel<Backend::cuda>(DType dtype, DType label_dtype, const CrossEntropyTerms& terms,
                                         std::byte* losses, std::byte* gradient, const std::byte* logits,
                                         const std::byte* labels, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "cross_entropy", [&]<class T>() {
    on_dtype(LabelTypes{}, label_dtype, "cross_entropy", [&]<class Label>() {
      using C = ComputeType<T>;
      const double classes = static_cast<double>(terms.classes);
      const Target<C> target{.label_weight = static_cast<C>(1 - terms.label_smoothing),
                             .class_weight = static_cast<C>(terms.label_smoothing / classes),
                             .scale = static_cast<C>(1.0 / static_cast<double>(terms.batch_rows)),
                             .classes = static_cast<C>(classes),
                             .focal_gamma = static_cast<C>(terms.focal_gamma),
                             .weights = reinterpret_cast<const C*>(terms.class_weights),
                             .total_weight = reinterpret_cast<const C*>(terms.total_weight)};
      const auto launch = [&](auto kernel, int rows_per_block, auto width) {
        kernel<<<blocks_for(terms.rows, rows_per_block), threads, 0, cuda_stream(stream)>>>(
            terms.rows, width, target, reinterpret_cast<C*>(losses), reinterpret_cast<T*>(gradient),
            reinterpret_cast<const T*>(logits), reinterpret_cast<const Label*>(labels));
      };
      const int width = static_cast<int>(std::min<std::int64_t>(terms.classes, 1024));
      if (terms.classes <= warp_size)
        launch(warp_cross_entropy<1, T, Label>, threads / warp_size, width);
      else if (terms.classes <= 8 * warp_size)
        launch(warp_cross_entropy<8, T, Label>, threads / warp_size, width);
      else if (terms.classes <= 32 * warp_size)
        launch(warp_cross_entropy<32, T, Label>, threads / warp_size, width);
      else
        launch(block_cross_entropy<T, Label>, 1, terms.classes);
    });
  });
  check_launch("cross-entropy kernel");
}

}  // namespace tandem::detail
