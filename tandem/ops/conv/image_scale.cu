// Both kernels are limited by memory: every thread moves 16 bytes at a time.
#include "tandem/ops/conv/image_scale_kernel.h"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

template <class T>
constexpr int max_width = static_cast<int>(16 / sizeof(T));

// One block per image and group of `lanes` packs of channels; its other threads divide the pixels.
template <int width, bool product, class T, class C>
__global__ void __launch_bounds__(threads)
    sum_pixels(int pixels, int packs, int lanes, C* __restrict__ sums, const T* __restrict__ a,
               const T* __restrict__ b, C factor) {
  const int thread = static_cast<int>(threadIdx.x), slots = threads / lanes, slot = thread / lanes;
  const int pack = static_cast<int>(blockIdx.y) * lanes + thread % lanes;
  const bool active = slot < slots && pack < packs;
  C sum[width] = {};
  if (active) {
    const std::int64_t first = std::int64_t{blockIdx.x} * pixels * packs + pack;
#pragma unroll 4
    for (int pixel = slot; pixel < pixels; pixel += slots) {
      const std::int64_t at = (first + std::int64_t{pixel} * packs) * width;
      const auto values = load_pack<width>(a + at);
      [[maybe_unused]] auto others = values;
      if constexpr (product) others = load_pack<width>(b + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(values.value[i]);
        if constexpr (product)
          sum[i] += value * convert<C>(others.value[i]);
        else
          sum[i] += value;
      }
    }
  }
  __shared__ C shared[width][threads];
#pragma unroll
  for (int i = 0; i < width; ++i) shared[i][thread] = sum[i];
  __syncthreads();
  if (!active || slot > 0) return;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    C total = 0;
    for (int other = 0; other < slots; ++other) total += shared[i][other * lanes + thread];
    sums[(std::int64_t{blockIdx.x} * packs + pack) * width + i] = total * factor;
  }
}

template <class C>
struct ScaleOperands {
  const C* factors;
  const C* shift;
  C shift_factor;
  bool per_channel;
};

// blockIdx.y counts images.
template <int width, class T, class C>
__global__ void __launch_bounds__(threads)
    scale_pixels(int images, int pixels, int packs, T* __restrict__ y, const T* __restrict__ x,
                 ScaleOperands<C> operands, const T* __restrict__ residual) {
  for (int image = static_cast<int>(blockIdx.y); image < images; image += static_cast<int>(gridDim.y)) {
    const std::int64_t first = std::int64_t{image} * pixels * packs * width;
    for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < pixels * packs;
         i += static_cast<int>(gridDim.x) * threads) {
      const std::int64_t at = first + std::int64_t{i} * width;
      const std::int64_t channel = (std::int64_t{image} * packs + i % packs) * width;
      auto values = load_pack<width>(x + at);
      [[maybe_unused]] auto others = values;
      if (residual) others = load_pack<width>(residual + at);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        C value = convert<C>(values.value[k]) *
                  operands.factors[operands.per_channel ? channel + k : std::int64_t{image}];
        if (operands.shift) value += operands.shift[channel + k] * operands.shift_factor;
        if (residual) value += convert<C>(others.value[k]);
        values.value[k] = convert<T>(value);
      }
      store_pack(y + at, values);
    }
  }
}

// Calls f.operator()<T, C, width>() with the widest packs that divide the channels.
template <class F>
void on_width(const ImageScalePlan& plan, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "scale_images", [&]<class T>() {
    using C = ComputeType<T>;
    if (plan.channels % max_width<T> == 0)
      f.template operator()<T, C, max_width<T>>();
    else
      f.template operator()<T, C, 1>();
  });
}

}  // namespace

template <>
void image_sums_kernel<Backend::cuda>(const ImageScalePlan& plan, const ImageSums& args, StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    const int packs = static_cast<int>(plan.channels) / width, pixels = static_cast<int>(plan.pixels);
    const int groups = (packs + 31) / 32, lanes = (packs + groups - 1) / groups;
    const dim3 grid(static_cast<unsigned>(plan.images), static_cast<unsigned>(groups));
    const auto launch = [&](auto kernel) {
      kernel<<<grid, threads, 0, cuda_stream(stream)>>>(
          pixels, packs, lanes, reinterpret_cast<C*>(args.sums), reinterpret_cast<const T*>(args.a),
          reinterpret_cast<const T*>(args.b), static_cast<C>(args.factor));
    };
    if (args.b)
      launch(sum_pixels<width, true, T, C>);
    else
      launch(sum_pixels<width, false, T, C>);
  });
  check_launch("sums of images");
}

template <>
void image_scale_kernel<Backend::cuda>(const ImageScalePlan& plan, const ImageScale& args,
                                       StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    const int packs = static_cast<int>(plan.channels) / width, pixels = static_cast<int>(plan.pixels);
    const dim3 grid(blocks_for(std::int64_t{pixels} * packs, threads),
                    static_cast<unsigned>(std::min<std::int64_t>(plan.images, 65535)));
    scale_pixels<width, T, C><<<grid, threads, 0, cuda_stream(stream)>>>(
        static_cast<int>(plan.images), pixels, packs, reinterpret_cast<T*>(args.y),
        reinterpret_cast<const T*>(args.x),
        ScaleOperands<C>{.factors = reinterpret_cast<const C*>(args.factors),
                         .shift = reinterpret_cast<const C*>(args.shift),
                         .shift_factor = static_cast<C>(args.shift_factor),
                         .per_channel = args.per_channel},
        reinterpret_cast<const T*>(args.residual));
  });
  check_launch("scaled images");
}

}  // namespace tandem::detail
