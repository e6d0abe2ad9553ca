#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/fold_norm.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_parts = 65535;  // of the grid's second axis

// Blocks (filter, part of it); weights move in packs of `width`.
template <int width, class From, class To>
__global__ void __launch_bounds__(threads) fold_filters(FoldNormPlan plan) {
  for (std::int64_t filter = blockIdx.x; filter < plan.filters; filter += gridDim.x) {
    const NormLine<From> line = norm_line<From>(plan, filter);
    if (blockIdx.y == 0 && threadIdx.x == 0)
      reinterpret_cast<ComputeType<To>*>(plan.new_bias)[filter] = convert<ComputeType<To>>(line.shift);
    const std::int64_t packs = plan.size / width;
    const auto* const from = reinterpret_cast<const Pack<From, width>*>(plan.weight) + filter * packs;
    auto* const to = reinterpret_cast<Pack<To, width>*>(plan.new_weight) + filter * packs;
    for (std::int64_t p = std::int64_t{blockIdx.y} * threads + threadIdx.x; p < packs;
         p += std::int64_t{gridDim.y} * threads) {
      const Pack<From, width> values = from[p];
      Pack<To, width> scaled;
#pragma unroll
      for (int i = 0; i < width; ++i) scaled.value[i] = convert<To>(values.value[i] * line.scale);
      to[p] = scaled;
    }
  }
}

template <int width, class From, class To>
void launch(const FoldNormPlan& plan, StreamView stream) {
  const auto parts = std::min<std::int64_t>(blocks_for(plan.size, threads * width), most_parts);
  const dim3 grid(blocks_for(plan.filters, 1), static_cast<unsigned>(parts));
  fold_filters<width, From, To><<<grid, threads, 0, cuda_stream(stream)>>>(plan);
}

}  // namespace

template <>
void fold_norm_kernel<Backend::cuda>(const FoldNormPlan& plan, StreamView stream) {
  on_dtype(TypeList<float, double>{}, plan.from, "fold_norm", [&]<class From>() {
    on_dtype(FloatTypes{}, plan.to, "fold_norm", [&]<class To>() {
      constexpr int width = static_cast<int>(16 / std::max(sizeof(From), sizeof(To)));
      const bool aligned = reinterpret_cast<std::uintptr_t>(plan.weight) % (width * sizeof(From)) == 0;
      if (aligned && plan.size % width == 0)
        launch<width, From, To>(plan, stream);
      else
        launch<1, From, To>(plan, stream);
    });
  });
  check_launch("fold_norm");
}

}  // namespace tandem
