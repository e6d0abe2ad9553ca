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
  C sum_of_logits;  // of x − max
};

template <class C>
struct Target {
  C label_weight;  // 1 − smoothing
  C class_weight;  // smoothing / classes
  C scale;         // 1 / n
  C classes;

  __device__ C gradient(C x, const RowStatistics<C>& row, bool is_label) const {
    const C p = exponential(x - row.max) / row.sum;
    return (p - class_weight - (is_label ? label_weight : C{0})) * scale;
  }
  __device__ C loss(C label_logit, const RowStatistics<C>& row) const {
    const C log_sum = logarithm(row.sum);
    C loss = label_weight * (log_sum - (label_logit - row.max));
    if (class_weight > 0) loss += (1 - label_weight) * (log_sum - row.sum_of_logits / classes);
    return loss * scale;
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
    RowStatistics<C> statistics{negative_infinity<C>(), 0, 0};
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      value[i] = column < classes ? convert<C>(x[row * classes + column]) : negative_infinity<C>();
      statistics.max = Max{}(statistics.max, value[i]);
    }
    statistics.max = warp_reduce(Max{}, statistics.max);
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      if (i * warp_size + lane >= classes) continue;
      statistics.sum += exponential(value[i] - statistics.max);
      statistics.sum_of_logits += value[i] - statistics.max;
    }
    statistics.sum = warp_reduce(Sum{}, statistics.sum);
    statistics.sum_of_logits = warp_reduce(Sum{}, statistics.sum_of_logits);
    if (lane == 0)
      losses[row] =
          is_valid ? target.loss(convert<C>(x[row * classes + label]), statistics) : not_a_number<C>();
    if (!gradient) continue;
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column < classes)
        gradient[row * classes + column] =
            convert<T>(is_valid ? target.gradient(value[i], statistics, column == label) : not_a_number<C>());
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
    RowStatistics<C> statistics{negative_infinity<C>(), 0, 0};
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      statistics.max = Max{}(statistics.max, convert<C>(from[i]));
    statistics.max = block_reduce(Max{}, statistics.max);
    for (std::int64_t i = threadIdx.x; i < classes; i += threads) {
      const C value = convert<C>(from[i]) - statistics.max;
      statistics.sum += exponential(value);
      statistics.sum_of_logits += value;
    }
    statistics.sum = block_reduce(Sum{}, statistics.sum);
    statistics.sum_of_logits = block_reduce(Sum{}, statistics.sum_of_logits);
    if (threadIdx.x == 0)
      losses[row] = is_valid ? target.loss(convert<C>(from[label]), statistics) : not_a_number<C>();
    if (!gradient) continue;
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      gradient[row * classes + i] = convert<T>(
          is_valid ? target.gradient(convert<C>(from[i]), statistics, i == label) : not_a_number<C>());
  }
}

}  // namespace

template <>
void cross_entropy_kernel<Backend::cuda>(DType dtype, DType label_dtype, const CrossEntropySize& size,
                                         std::byte* losses, std::byte* gradient, const std::byte* logits,
                                         const std::byte* labels, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "cross_entropy", [&]<class T>() {
    on_dtype(LabelTypes{}, label_dtype, "cross_entropy", [&]<class Label>() {
      using C = ComputeType<T>;
      const double classes = static_cast<double>(size.classes);
      const Target<C> target{.label_weight = static_cast<C>(1 - size.label_smoothing),
                             .class_weight = static_cast<C>(size.label_smoothing / classes),
                             .scale = static_cast<C>(1.0 / static_cast<double>(size.batch_rows)),
                             .classes = static_cast<C>(classes)};
      const auto launch = [&](auto kernel, int rows_per_block, auto width) {
        kernel<<<blocks_for(size.rows, rows_per_block), threads, 0, cuda_stream(stream)>>>(
            size.rows, width, target, reinterpret_cast<C*>(losses), reinterpret_cast<T*>(gradient),
            reinterpret_cast<const T*>(logits), reinterpret_cast<const Label*>(labels));
      };
      const int width = static_cast<int>(std::min<std::int64_t>(size.classes, 1024));
      if (size.classes <= warp_size)
        launch(warp_cross_entropy<1, T, Label>, threads / warp_size, width);
      else if (size.classes <= 8 * warp_size)
        launch(warp_cross_entropy<8, T, Label>, threads / warp_size, width);
      else if (size.classes <= 32 * warp_size)
        launch(warp_cross_entropy<32, T, Label>, threads / warp_size, width);
      else
        launch(block_cross_entropy<T, Label>, 1, size.classes);
    });
  });
  check_launch("cross-entropy kernel");
}

}  // namespace tandem::detail
