#include <algorithm>
#include <cstdint>

#include "tandem/core/convert.h"
#include "tandem/core/on_dtype.h"
#include "tandem/ops/conv/quantized_epilogue.cuh"
#include "tandem/ops/conv/quantized_images.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

// One thread per value that is written.
template <class T>
__global__ void __launch_bounds__(threads)
    quantize(std::uint8_t* __restrict__ y, const T* __restrict__ x, std::int64_t pixels, std::int64_t given,
             std::int64_t channels, float inverse, float zero) {
  const std::int64_t count = pixels * channels;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t channel = i % channels;
    const float value = channel < given ? convert<float>(x[i / channels * given + channel]) : 0.0f;
    y[i] = static_cast<std::uint8_t>(__float2int_rn(quantized_value(value, inverse, zero)));
  }
}

// One thread per `Word` of channels of a pixel.
template <class Word>
__global__ void __launch_bounds__(threads)
    max_pool(PoolPlan p, Word* __restrict__ y, const Word* __restrict__ x) {
  const std::int64_t words = p.channels / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t count = p.images * p.out.y * p.out.x * words;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t word = i % words, pixel = i / words, image = pixel / (p.out.y * p.out.x);
    const std::int64_t top = pixel / p.out.x % p.out.y * p.window.stride.y - p.window.padding.y,
                       left = pixel % p.out.x * p.window.stride.x - p.window.padding.x;
    std::uint32_t best = 0;
    for (std::int64_t row = max(top, std::int64_t{0}); row < min(top + p.kernel.y, p.in.y); ++row)
      for (std::int64_t column = max(left, std::int64_t{0}); column < min(left + p.kernel.x, p.in.x);
           ++column)
        best = __vmaxu4(best, x[((image * p.in.y + row) * p.in.x + column) * words + word]);
    y[i] = static_cast<Word>(best);
  }
}

// One thread per image and channel.
__global__ void __launch_bounds__(threads)
    image_mean(PoolPlan p, float* __restrict__ y, const std::uint8_t* __restrict__ x, Quantization values) {
  const std::int64_t count = p.images * p.channels, pixels = p.in.y * p.in.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::uint8_t* const from = x + i / p.channels * pixels * p.channels + i % p.channels;
    int sum = 0;
#pragma unroll 7
    for (std::int64_t k = 0; k < pixels; ++k) sum += from[k * p.channels];
    y[i] = __fmul_rn(values.scale,
                     __fsub_rn(__fdiv_rn(static_cast<float>(sum), static_cast<float>(pixels)), values.zero));
  }
}

}  // namespace

template <>
void quantize_images_kernel<Backend::cuda>(const FloatingImages& images, Quantization values,
                                           std::int64_t channels, std::uint8_t* y, StreamView stream) {
  on_dtype(TypeList<float, BFloat16>{}, images.dtype, "quantize_images", [&]<class T>() {
    quantize<<<blocks_for(images.pixels * channels, threads), threads, 0, cuda_stream(stream)>>>(
        y, reinterpret_cast<const T*>(images.data), images.pixels, images.channels, channels,
        1 / values.scale, values.zero);
  });
  check_launch("quantize_images");
}

template <>
void quantized_max_pool2d_kernel<Backend::cuda>(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x,
                                                StreamView stream) {
  const std::int64_t count = plan.images * plan.out.y * plan.out.x * plan.channels;
  if (plan.channels % 4 == 0)
    max_pool<<<blocks_for(count / 4, threads), threads, 0, cuda_stream(stream)>>>(
        plan, reinterpret_cast<std::uint32_t*>(y), reinterpret_cast<const std::uint32_t*>(x));
  else
    max_pool<<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(plan, y, x);
  check_launch("quantized_max_pool2d");
}

template <>
void quantized_image_mean_kernel<Backend::cuda>(const PoolPlan& plan, float* y, const std::uint8_t* x,
                                                Quantization values, StreamView stream) {
  image_mean<<<blocks_for(plan.images * plan.channels, threads), threads, 0, cuda_stream(stream)>>>(
      plan, y, x, values);
  check_launch("quantized_image_mean");
}

}  // namespace tandem::detail
