// Cross-entropy on CUDA: a row of up to 1024 classes belongs to one warp, which reads it once and holds it in
// registers; a longer row belongs to a block.
#include "tandem/ops/cross_entropy.h"

#include "tandem/ops/row_warps.cuh"

namespace tandem {
namespace {

using namespace warps;

// What the elements of a row need, once its folds are known.
template <class C>
struct RowFigures {
  C greatest, sum, sum_of_logits;  // of exp(x − greatest) and of x − greatest
};

template <class C>
struct Target {
  C on, off, scale, classes;  // scale is 1 / n

  __device__ C gradient(C x, const RowFigures<C>& row, bool is_label) const {
    const C p = exponential(x - row.greatest) / row.sum;
    return (p - off - (is_label ? on : C{0})) * scale;
  }
  __device__ C loss(C at_label, const RowFigures<C>& row) const {
    const C log_sum = logarithm(row.sum);
    C loss = on * (log_sum - (at_label - row.greatest));
    if (off > 0) loss += (1 - on) * (log_sum - row.sum_of_logits / classes);
    return loss * scale;
  }
};

template <class C>
__device__ C not_a_number() {
  return static_cast<C>(NAN);
}

template <int held, class T, class Label>
__global__ void __launch_bounds__(threads)
    warp_cross_entropy(std::int64_t rows, int classes, Target<ComputeType<T>> target,
                       ComputeType<T>* __restrict__ losses, T* __restrict__ gradient, const T* __restrict__ x,
                       const Label* __restrict__ labels) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp) + threadIdx.x / warp; row < rows;
       row += step) {
    const std::int64_t label = labels[row];
    const bool legal = label >= 0 && label < classes;
    C value[held];
    RowFigures<C> figures{lowest<C>(), 0, 0};
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      value[i] = column < classes ? convert<C>(x[row * classes + column]) : lowest<C>();
      figures.greatest = Greater{}(figures.greatest, value[i]);
    }
    figures.greatest = join_warp(Greater{}, figures.greatest);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (i * warp + lane >= classes) continue;
      figures.sum += exponential(value[i] - figures.greatest);
      figures.sum_of_logits += value[i] - figures.greatest;
    }
    figures.sum = join_warp(Plus{}, figures.sum);
    figures.sum_of_logits = join_warp(Plus{}, figures.sum_of_logits);
    if (lane == 0)
      losses[row] = legal ? target.loss(convert<C>(x[row * classes + label]), figures) : not_a_number<C>();
    if (!gradient) continue;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      if (column < classes)
        gradient[row * classes + column] =
            convert<T>(legal ? target.gradient(value[i], figures, column == label) : not_a_number<C>());
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
    const bool legal = label >= 0 && label < classes;
    RowFigures<C> figures{lowest<C>(), 0, 0};
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      figures.greatest = Greater{}(figures.greatest, convert<C>(from[i]));
    figures.greatest = join_block(Greater{}, figures.greatest);
    for (std::int64_t i = threadIdx.x; i < classes; i += threads) {
      const C value = convert<C>(from[i]) - figures.greatest;
      figures.sum += exponential(value);
      figures.sum_of_logits += value;
    }
    figures.sum = join_block(Plus{}, figures.sum);
    figures.sum_of_logits = join_block(Plus{}, figures.sum_of_logits);
    if (threadIdx.x == 0)
      losses[row] = legal ? target.loss(convert<C>(from[label]), figures) : not_a_number<C>();
    if (!gradient) continue;
    for (std::int64_t i = threadIdx.x; i < classes; i += threads)
      gradient[row * classes + i] =
          convert<T>(legal ? target.gradient(convert<C>(from[i]), figures, i == label) : not_a_number<C>());
  }
}

}  // namespace

template <>
void cross_entropy_kernel<Backend::cuda>(DType dtype, DType label_dtype, const CrossEntropySize& size,
                                         std::byte* losses, std::byte* gradient, const std::byte* logits,
                                         const std::byte* labels, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "cross_entropy", [&]<class T>() {
    on_dtype(TypeList<std::int32_t, std::int64_t>{}, label_dtype, "cross_entropy", [&]<class Label>() {
      using C = ComputeType<T>;
      const double classes = static_cast<double>(size.classes);
      const Target<C> target{.on = static_cast<C>(1 - size.label_smoothing),
                             .off = static_cast<C>(size.label_smoothing / classes),
                             .scale = static_cast<C>(1.0 / static_cast<double>(size.rows)),
                             .classes = static_cast<C>(classes)};
      const auto launch = [&](auto kernel, int rows_per_block, auto width) {
        kernel<<<blocks_for(size.rows, rows_per_block), threads, 0, cuda_stream(stream)>>>(
            size.rows, width, target, reinterpret_cast<C*>(losses), reinterpret_cast<T*>(gradient),
            reinterpret_cast<const T*>(logits), reinterpret_cast<const Label*>(labels));
      };
      const int width = static_cast<int>(std::min<std::int64_t>(size.classes, 1024));
      if (size.classes <= warp)
        launch(warp_cross_entropy<1, T, Label>, threads / warp, width);
      else if (size.classes <= 8 * warp)
        launch(warp_cross_entropy<8, T, Label>, threads / warp, width);
      else if (size.classes <= 32 * warp)
        launch(warp_cross_entropy<32, T, Label>, threads / warp, width);
      else
        launch(block_cross_entropy<T, Label>, 1, size.classes);
    });
  });
  check_launch("cross-entropy kernel");
}

}  // namespace tandem
