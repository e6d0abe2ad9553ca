// 8-bit convolutions on CUDA: kernels for Hopper's tensor cores where they are applicable, else plain ones,
// with one thread per result.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/device/buffer.h"
#include "tandem/ops/conv/quantized_conv_kernel.h"
#include "tandem/ops/conv/quantized_epilogue.cuh"
#include "tandem/ops/conv/quantized_halo_conv.cuh"
#include "tandem/ops/conv/quantized_stem.cuh"
#include "tandem/ops/conv/quantized_tile_conv.cuh"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

struct PlainConv {
  Conv2dPlan plan;
  QuantizedEpilogue epilogue;
  int padding;  // the stored zero
  const float* scale;
  const float* bias;
  const std::uint8_t* residual;
};

__global__ void __launch_bounds__(threads)
    convolve_plainly(PlainConv conv, std::uint8_t* __restrict__ y, const std::uint8_t* __restrict__ x,
                     const std::int8_t* __restrict__ weight) {
  const Conv2dPlan& p = conv.plan;
  const std::int64_t count = p.images * p.out.y * p.out.x * p.filters;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t filter = i % p.filters, pixel = i / p.filters, image = pixel / (p.out.y * p.out.x);
    const std::int64_t top = pixel / p.out.x % p.out.y * p.window.stride.y - p.window.padding.y,
                       left = pixel % p.out.x * p.window.stride.x - p.window.padding.x;
    int sum = 0;
    const std::int8_t* factor = weight + filter * p.kernel.y * p.kernel.x * p.channels;
    for (std::int64_t ky = 0; ky < p.kernel.y; ++ky)
      for (std::int64_t kx = 0; kx < p.kernel.x; ++kx, factor += p.channels) {
        const std::int64_t row = top + ky * p.window.dilation.y, column = left + kx * p.window.dilation.x;
        const bool is_inside = row >= 0 && row < p.in.y && column >= 0 && column < p.in.x;
        const std::int64_t from = ((image * p.in.y + row) * p.in.x + column) * p.channels;
        for (std::int64_t c = 0; c < p.channels; ++c)
          sum += (is_inside ? x[from + c] : conv.padding) * factor[c];
      }
    const ColumnNumbers numbers = column_numbers(conv.epilogue, conv.scale[filter], conv.bias[filter]);
    float value = __fmaf_rn(static_cast<float>(sum), numbers.scale, numbers.shift);
    if (conv.residual)
      value = __fmaf_rn(static_cast<float>(conv.residual[i]), conv.epilogue.residual_scale, value);
    if (conv.epilogue.has_min) value = fmaxf(value, conv.epilogue.zero);
    y[i] = static_cast<std::uint8_t>(min(max(__float2int_rn(value), 0), 255));
  }
}

void convolve_plainly(const QuantizedTask& task, StreamView stream) {
  const QuantizedConv2d& conv = task.conv;
  const PlainConv plain{.plan = task.plan,
                        .epilogue = epilogue_of(task),
                        .padding = static_cast<int>(conv.input.zero),
                        .scale = conv.scale.data<float>(),
                        .bias = conv.bias.data<float>(),
                        .residual = reinterpret_cast<const std::uint8_t*>(task.residual)};
  convolve_plainly<<<blocks_for(sizes_of(task.plan).y, threads), threads, 0, cuda_stream(stream)>>>(
      plain, reinterpret_cast<std::uint8_t*>(task.y), reinterpret_cast<const std::uint8_t*>(task.x),
      reinterpret_cast<const std::int8_t*>(conv.plain.bytes()));
  check_launch("quantized_conv2d (plain)");
}

Tensor on_device(const void* bytes, std::size_t count, Device device) {
  const auto* const first = static_cast<const std::uint8_t*>(bytes);
  return Tensor::from(std::vector<std::uint8_t>(first, first + count), {static_cast<std::int64_t>(count)},
                      device);
}

}  // namespace

template <>
void pack_quantized_weight<Backend::cuda>(QuantizedConv2d& conv, const std::int8_t* weight, Device device) {
  const Shape& shape = conv.weight_shape;
  const auto count = static_cast<std::size_t>(shape.numel());
  conv.plain = on_device(weight, count, device);
  if (is_quantized_stem_applicable(shape, conv.options, device)) {
    const std::vector<BFloat16> ordered = order_stem_weight(shape, weight);
    conv.packed = on_device(ordered.data(), 2 * ordered.size(), device);
  } else if (conv.input.zero == 0 && is_quantized_tile_conv_applicable(shape, conv.options, device)) {
    conv.packed = on_device(order_tile_weight(shape, weight).data(), count, device);
  }
}

template <>
void quantized_conv2d_kernel<Backend::cuda>(const QuantizedTask& task, StreamView stream) {
  const QuantizedConv2d& conv = task.conv;
  const bool is_tiled =
      conv.packed.defined() && !is_quantized_stem_applicable(conv.weight_shape, conv.options, stream.device);
  if (is_tiled && (quantized_halo_conv2d(task, stream) || quantized_tile_conv2d(task, stream))) return;
  convolve_plainly(task, stream);
}

template <>
void quantized_stem_kernel<Backend::cuda>(const QuantizedTask& task, const FloatingImages& images,
                                          const PoolPlan& pool, StreamView stream) {
  if (fused_quantized_stem(task, images, pool, stream)) return;
  const Buffer stored(static_cast<std::size_t>(sizes_of(task.plan).x), stream),
      values(static_cast<std::size_t>(sizes_of(task.plan).y), stream);
  quantize_images_kernel<Backend::cuda>(images, task.conv.input, images.channels,
                                        reinterpret_cast<std::uint8_t*>(stored.data()), stream);
  QuantizedTask conv = task;
  conv.x = stored.data();
  conv.y = values.data();
  convolve_plainly(conv, stream);
  quantized_max_pool2d_kernel<Backend::cuda>(pool, reinterpret_cast<std::uint8_t*>(task.y),
                                             reinterpret_cast<const std::uint8_t*>(values.data()), stream);
}

}  // namespace tandem::detail
