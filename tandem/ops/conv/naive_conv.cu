#include "tandem/ops/conv/naive_conv.cuh"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/fused_activation_kernel.h"
#include "tandem/ops/row_kernel.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

// The input position of a tap of window `out`, along one axis.
__device__ std::int64_t input_position(std::int64_t out, std::int64_t stride, std::int64_t tap,
                                       std::int64_t dilation, std::int64_t padding) {
  return out * stride + tap * dilation - padding;
}

template <class T>
__global__ void __launch_bounds__(threads)
    convolve(Conv2dPlan p, std::int64_t count, T* y, const T* x, const T* weight, const T* bias) {
  const std::int64_t inner = p.channels / p.groups, outer = p.filters / p.groups;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t filter = i % p.filters, column = i / p.filters % p.out.x;
    const std::int64_t row = i / (p.filters * p.out.x) % p.out.y, image = i / (p.filters * p.out.x * p.out.y);
    ComputeType<T> sum = bias ? convert<ComputeType<T>>(bias[filter]) : ComputeType<T>{0};
    for (std::int64_t ky = 0; ky < p.kernel.y; ++ky) {
      const std::int64_t in_y =
          input_position(row, p.window.stride.y, ky, p.window.dilation.y, p.window.padding.y);
      if (in_y < 0 || in_y >= p.in.y) continue;
      for (std::int64_t kx = 0; kx < p.kernel.x; ++kx) {
        const std::int64_t in_x =
            input_position(column, p.window.stride.x, kx, p.window.dilation.x, p.window.padding.x);
        if (in_x < 0 || in_x >= p.in.x) continue;
        const T* from = x + ((image * p.in.y + in_y) * p.in.x + in_x) * p.channels + filter / outer * inner;
        const T* w = weight + ((filter * p.kernel.y + ky) * p.kernel.x + kx) * inner;
        for (std::int64_t c = 0; c < inner; ++c)
          sum += convert<ComputeType<T>>(from[c]) * convert<ComputeType<T>>(w[c]);
      }
    }
    y[i] = convert<T>(sum);
  }
}

// One thread per input pixel and channel: sums over the windows that contain the pixel.
template <class T>
__global__ void __launch_bounds__(threads)
    gather_gradient(Conv2dPlan p, std::int64_t count, T* dx, const T* dy, const T* weight) {
  const std::int64_t inner = p.channels / p.groups, outer = p.filters / p.groups;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t channel = i % p.channels, column = i / p.channels % p.in.x;
    const std::int64_t row = i / (p.channels * p.in.x) % p.in.y, image = i / (p.channels * p.in.x * p.in.y);
    const std::int64_t first_filter = channel / inner * outer;
    ComputeType<T> sum = 0;
    for (std::int64_t ky = 0; ky < p.kernel.y; ++ky) {
      const std::int64_t at_y = row + p.window.padding.y - ky * p.window.dilation.y;
      if (at_y < 0 || at_y % p.window.stride.y != 0 || at_y / p.window.stride.y >= p.out.y) continue;
      for (std::int64_t kx = 0; kx < p.kernel.x; ++kx) {
        const std::int64_t at_x = column + p.window.padding.x - kx * p.window.dilation.x;
        if (at_x < 0 || at_x % p.window.stride.x != 0 || at_x / p.window.stride.x >= p.out.x) continue;
        const T* g =
            dy +
            ((image * p.out.y + at_y / p.window.stride.y) * p.out.x + at_x / p.window.stride.x) * p.filters;
        for (std::int64_t f = first_filter; f < first_filter + outer; ++f)
          sum += convert<ComputeType<T>>(g[f]) *
                 convert<ComputeType<T>>(
                     weight[((f * p.kernel.y + ky) * p.kernel.x + kx) * inner + channel % inner]);
      }
    }
    dx[i] = convert<T>(sum);
  }
}

// One block per weight, which sums over all images and output pixels.
template <class T, class Gradient>
__global__ void __launch_bounds__(row_ops::threads)
    sum_weight_gradient(Conv2dPlan p, Gradient* dweight, const T* dy, const T* x) {
  const std::int64_t inner = p.channels / p.groups, outer = p.filters / p.groups;
  const std::int64_t i = blockIdx.x;
  const std::int64_t c = i % inner, kx = i / inner % p.kernel.x, ky = i / (inner * p.kernel.x) % p.kernel.y;
  const std::int64_t filter = i / (inner * p.kernel.x * p.kernel.y);
  const std::int64_t channel = filter / outer * inner + c;
  const std::int64_t pixels = p.out.y * p.out.x;
  ComputeType<T> sum = 0;
  for (std::int64_t at = threadIdx.x; at < p.images * pixels; at += row_ops::threads) {
    const std::int64_t image = at / pixels, row = at % pixels / p.out.x, column = at % p.out.x;
    const std::int64_t in_y =
        input_position(row, p.window.stride.y, ky, p.window.dilation.y, p.window.padding.y);
    const std::int64_t in_x =
        input_position(column, p.window.stride.x, kx, p.window.dilation.x, p.window.padding.x);
    if (in_y < 0 || in_y >= p.in.y || in_x < 0 || in_x >= p.in.x) continue;
    sum += convert<ComputeType<T>>(dy[at * p.filters + filter]) *
           convert<ComputeType<T>>(x[((image * p.in.y + in_y) * p.in.x + in_x) * p.channels + channel]);
  }
  sum = row_ops::block_reduce(row_ops::Sum{}, sum);
  if (threadIdx.x == 0) dweight[i] = convert<Gradient>(sum);
}

// Packs of `width` adjacent channels.
template <int width, FusedActivation activation, class T, class Bias>
__global__ void __launch_bounds__(threads)
    apply_epilogue(std::int64_t packs, unsigned pixel_packs, T* y, const Bias* __restrict__ bias,
                   const T* __restrict__ residual) {
  using C = ComputeType<T>;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < packs;
       i += std::int64_t{gridDim.x} * threads) {
    Pack<T, width> values = load_pack<width>(y + i * width), added = values;
    if (residual) added = load_pack<width>(residual + i * width);
    const auto channel = static_cast<int>(static_cast<std::uint64_t>(i) % pixel_packs) * width;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      C value = convert<C>(values.value[k]);
      if (bias) value += convert<C>(bias[channel + k]);
      if (residual) value += convert<C>(added.value[k]);
      values.value[k] = convert<T>(activate_value<Backend::cuda, activation>(value));
    }
    store_pack(y + i * width, values);
  }
}

std::int64_t result_count(const Conv2dPlan& plan) {
  return plan.images * plan.out.y * plan.out.x * plan.filters;
}

}  // namespace

void naive_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const std::byte* bias, StreamView stream) {
  const std::int64_t count = result_count(plan);
  on_dtype(FloatTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    convolve<T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, count, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x),
        reinterpret_cast<const T*>(weight), reinterpret_cast<const T*>(bias));
  });
  check_launch("conv2d");
}

void naive_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream) {
  const std::int64_t count = plan.images * plan.in.y * plan.in.x * plan.channels;
  on_dtype(FloatTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    gather_gradient<T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, count, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy),
        reinterpret_cast<const T*>(weight));
  });
  check_launch("conv2d input gradient");
}

void naive_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream) {
  const std::int64_t count = plan.filters * plan.kernel.y * plan.kernel.x * (plan.channels / plan.groups);
  on_dtype(FloatTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    using Gradient = ComputeType<T>;  // f32 for bf16
    sum_weight_gradient<T, Gradient>
        <<<static_cast<unsigned>(count), row_ops::threads, 0, cuda_stream(stream)>>>(
            plan, reinterpret_cast<Gradient*>(dweight), reinterpret_cast<const T*>(dy),
            reinterpret_cast<const T*>(x));
  });
  check_launch("conv2d weight gradient");
}

void naive_epilogue(const Conv2dPlan& plan, std::byte* y, const Conv2dEpilogue& epilogue, bool wide_bias,
                    StreamView stream) {
  const std::int64_t count = result_count(plan);
  on_dtype(FloatTypes{}, plan.dtype, "conv2d", [&]<class T>() {
    const auto launch = [&]<class Bias, int width>() {
      on_fused_activation(epilogue.activation, [&]<FusedActivation activation>() {
        apply_epilogue<width, activation, T, Bias>
            <<<blocks_for(count / width, threads), threads, 0, cuda_stream(stream)>>>(
                count / width, static_cast<unsigned>(plan.filters / width), reinterpret_cast<T*>(y),
                reinterpret_cast<const Bias*>(epilogue.bias), reinterpret_cast<const T*>(epilogue.residual));
      });
    };
    const auto with_bias = [&]<class Bias>() {
      constexpr int width = static_cast<int>(16 / sizeof(T));
      plan.filters % width == 0 ? launch.template operator()<Bias, width>()
                                : launch.template operator()<Bias, 1>();
    };
    wide_bias ? with_bias.template operator()<ComputeType<T>>() : with_bias.template operator()<T>();
  });
  check_launch("conv2d epilogue");
}

}  // namespace tandem::detail
