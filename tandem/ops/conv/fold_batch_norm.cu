#include "tandem/core/on_dtype.h"
#include "tandem/ops/conv/fold_batch_norm.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;
constexpr std::int64_t max_parts = 65535;  // CUDA's limit for gridDim.y

// Block (x, y) handles part y of filter x. Weights move in packs of `width`.
template <int width, class From, class To>
__global__ void __launch_bounds__(threads) fold_filters(FoldBatchNormPlan plan) {
  for (std::int64_t filter = blockIdx.x; filter < plan.filters; filter += gridDim.x) {
    const ScaleShift<From> affine = scale_shift_of<From>(plan, filter);
    if (blockIdx.y == 0 && threadIdx.x == 0)
      reinterpret_cast<ComputeType<To>*>(plan.new_bias)[filter] = convert<ComputeType<To>>(affine.shift);
    const std::int64_t packs = plan.filter_size / width;
    const auto* const from = reinterpret_cast<const Pack<From, width>*>(plan.weight) + filter * packs;
    auto* const to = reinterpret_cast<Pack<To, width>*>(plan.new_weight) + filter * packs;
    for (std::int64_t p = std::int64_t{blockIdx.y} * threads + threadIdx.x; p < packs;
         p += std::int64_t{gridDim.y} * threads) {
      const Pack<From, width> values = from[p];
      Pack<To, width> scaled;
#pragma unroll
      for (int i = 0; i < width; ++i) scaled.value[i] = convert<To>(values.value[i] * affine.scale);
      to[p] = scaled;
    }
  }
}

template <int width, class From, class To>
void launch(const FoldBatchNormPlan& plan, StreamView stream) {
  const auto parts = std::min<std::int64_t>(blocks_for(plan.filter_size, threads * width), max_parts);
  const dim3 grid(blocks_for(plan.filters, 1), static_cast<unsigned>(parts));
  fold_filters<width, From, To><<<grid, threads, 0, cuda_stream(stream)>>>(plan);
}

}  // namespace

template <>
void fold_batch_norm_kernel<Backend::cuda>(const FoldBatchNormPlan& plan, StreamView stream) {
  on_dtype(TypeList<float, double>{}, plan.from, "fold_batch_norm", [&]<class From>() {
    on_dtype(FloatTypes{}, plan.to, "fold_batch_norm", [&]<class To>() {
      constexpr int width = static_cast<int>(16 / std::max(sizeof(From), sizeof(To)));
      const bool aligned = is_aligned<width>(reinterpret_cast<const From*>(plan.weight));
      if (aligned && plan.filter_size % width == 0)
        launch<width, From, To>(plan, stream);
      else
        launch<1, From, To>(plan, stream);
    });
  });
  check_launch("fold_batch_norm");
}

}  // namespace tandem::detail
