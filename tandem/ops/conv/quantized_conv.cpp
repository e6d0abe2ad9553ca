#include "tandem/ops/conv/quantized_conv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/index_range.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/buffer.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {
namespace {

// A plan whose only use is the layout of the packed weight, which does not depend on the image size.
Conv2dPlan weight_plan(const Shape& weight, const Conv2dOptions& options) {
  const YX dilation = options.window.dilation;
  const Tensor x = Tensor::empty(
      {1, dilation.y * (weight[1] - 1) + 1, dilation.x * (weight[2] - 1) + 1, weight[3]}, DType::bf16);
  return conv2d_plan(x, weight, options);
}

void check_parameters(const Tensor& weight, DType dtype, const Tensor& bias, const Conv2dOptions& options) {
  common_device("quantized_conv2d", {&weight, &bias});
  check(weight.dtype() == dtype && weight.rank() == 4 && options.groups == 1,
        "[quantized_conv2d] expected a weight (out, kernel y, kernel x, channels) of {}, got {} of {}",
        name_of(dtype), weight.shape(), name_of(weight.dtype()));
  check(bias.dtype() == DType::f32 && bias.rank() == 1 && bias.size(0) == weight.size(0),
        "[quantized_conv2d] expected bias ({}) of f32, got {} of {}", weight.size(0), bias.shape(),
        name_of(bias.dtype()));
}

PoolPlan pool_plan(std::int64_t images, YX in, std::int64_t channels, YX kernel, const Window& window) {
  check(window.dilation == YX{1, 1} && kernel.y > window.padding.y && kernel.x > window.padding.x &&
            in.y + 2 * window.padding.y >= kernel.y && in.x + 2 * window.padding.x >= kernel.x,
        "[max_pool2d] expected u8 images of at least {}x{} and no dilation, got {}x{}", kernel.y, kernel.x,
        in.y, in.x);
  return {.images = images,
          .channels = channels,
          .in = in,
          .kernel = kernel,
          .out = {(in.y + 2 * window.padding.y - kernel.y) / window.stride.y + 1,
                  (in.x + 2 * window.padding.x - kernel.x) / window.stride.x + 1},
          .window = window,
          .dtype = DType::u8};
}

}  // namespace

void check_quantized_images(const char* op, const Tensor& x) {
  check(x.dtype() == DType::u8 && x.rank() == 4,
        "[{}] expected u8 images (n, height, width, channels), got {} of {}", op, x.shape(),
        name_of(x.dtype()));
}

// Shapes alone are used of the stand-in: convolutions have plans for floating dtypes.
Conv2dPlan quantized_plan(const QuantizedConv2d& conv, const Shape& images) {
  check(images.rank() == 4, "[quantized_conv2d] expected images (n, height, width, channels), got {}",
        images);
  Conv2dPlan plan = conv2d_plan(Tensor::empty({0, images[1], images[2], images[3]}, DType::bf16),
                                conv.weight_shape, conv.options);
  plan.images = images[0];
  return plan;
}

QuantizedWeight quantize_weight(const Tensor& weight) {
  check(weight.dtype() == DType::f32 && weight.rank() == 4 && weight.device() == cpu_device,
        "[quantize_weight] expected f32 (out, kernel y, kernel x, channels) on the CPU, got {} of {}",
        weight.shape(), name_of(weight.dtype()));
  const Tensor from = weight.detach().contiguous();
  const std::int64_t filters = from.size(0), size = filters == 0 ? 0 : from.numel() / filters;
  QuantizedWeight result{Tensor::empty(from.shape(), DType::u8), Tensor::empty({filters}, DType::f32)};
  for (std::int64_t f = 0; f < filters; ++f) {
    const float* const values = from.data<float>() + f * size;
    std::uint8_t* const stored = result.stored.data<std::uint8_t>() + f * size;
    float max = 0;
    for (std::int64_t i = 0; i < size; ++i) max = std::max(max, std::abs(values[i]));
    // Filters without weights, and those whose quotients would overflow, are zero.
    const float scale = max > 1e-30f ? max / 127 : 1;
    for (std::int64_t i = 0; i < size; ++i)
      stored[i] = static_cast<std::uint8_t>(stored_weight_zero +
                                            std::clamp(std::lround(values[i] / scale), -127L, 127L));
    result.scale.data<float>()[f] = scale;
  }
  return result;
}

Tensor dequantize_weight(const Tensor& stored, const Tensor& scale) {
  expect(stored.dtype() == DType::u8 && scale.numel() == stored.size(0));
  const Tensor from = stored.contiguous();
  Tensor weight = Tensor::empty(from.shape(), DType::f32);
  const std::int64_t size = from.numel() / std::max<std::int64_t>(from.size(0), 1);
  for (std::int64_t i = 0; i < from.numel(); ++i)
    weight.data<float>()[i] =
        scale.data<float>()[i / size] * static_cast<float>(from.data<std::uint8_t>()[i] - stored_weight_zero);
  return weight;
}

template <>
void pack_quantized_weight<Backend::cpu>(QuantizedConv2d& conv, const std::byte* weight, Device) {
  const Conv2dPlan plan = weight_plan(conv.weight_shape, conv.options);
  conv.packed = Tensor::empty({block_conv_weight_bytes(plan, conv.type)}, DType::u8);
  pack_block_conv_weight(plan, conv.type, conv.packed.bytes(), weight);
}

QuantizedConv2d prepack_quantized_conv2d(const QuantizedWeight& weight, const Tensor& bias,
                                         const Conv2dOptions& options, Quantization input,
                                         Quantization result) {
  check_parameters(weight.stored, DType::u8, bias, options);
  check_parameters(weight.stored, DType::u8, weight.scale, options);
  const Device device = weight.stored.device();
  check(!device.is_cuda() || input.zero == 0,
        "[quantized_conv2d] expected images whose zero is 0 on a GPU, got {}", input.zero);
  const Shape& shape = weight.stored.shape();
  const std::int64_t filters = shape[0], size = weight.stored.numel() / std::max<std::int64_t>(filters, 1);
  QuantizedConv2d conv{.options = options,
                       .weight_shape = shape,
                       .type = MatrixType::int8,
                       .packed = {},
                       .scale = Tensor::empty({filters}, DType::f32),
                       .bias = Tensor::empty({filters}, DType::f32),
                       .input = input,
                       .result = result};
  const Tensor stored = weight.stored.detach().contiguous().cpu(), scales = weight.scale.cpu(),
               biases = bias.cpu();
  std::vector<std::int8_t> numbers(static_cast<std::size_t>(stored.numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::int8_t>(stored.data<std::uint8_t>()[i] - stored_weight_zero);
  for (std::int64_t f = 0; f < filters; ++f) {
    std::int64_t sum = 0, positive = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const int number = numbers[static_cast<std::size_t>(f * size + i)];
      sum += number;
      positive += std::max(number, 0);
    }
    const float scale = input.scale * scales.data<float>()[f];
    conv.scale.data<float>()[f] = scale;
    // The stored images are not shifted by their zero: the sum of zero · weight is subtracted here.
    conv.bias.data<float>()[f] = biases.data<float>()[f] - scale * input.zero * static_cast<float>(sum);
    conv.max_sum = std::max(conv.max_sum, 255 * static_cast<float>(std::max(positive, positive - sum)));
    conv.max_scale = std::max(conv.max_scale, std::abs(scale));
    conv.max_bias = std::max(conv.max_bias, std::abs(conv.bias.data<float>()[f]));
  }
  on_backend(device, "quantized_conv2d", [&]<Backend B>() {
    pack_quantized_weight<B>(conv, reinterpret_cast<const std::byte*>(numbers.data()), device);
  });
  conv.scale = conv.scale.to(device);
  conv.bias = conv.bias.to(device);
  return conv;
}

QuantizedConv2d prepack_bf16_to_u8_conv2d(const Tensor& weight, const Tensor& bias,
                                          const Conv2dOptions& options, Quantization result) {
  check_parameters(weight, DType::bf16, bias, options);
  const Device device = weight.device();
  QuantizedConv2d conv{.options = options,
                       .weight_shape = weight.shape(),
                       .type = MatrixType::bf16,
                       .packed = {},
                       .scale = {},
                       .bias = bias.detach().contiguous(),
                       .input = {},
                       .result = result};
  const Tensor host = weight.detach().contiguous().cpu();
  on_backend(device, "quantized_conv2d",
             [&]<Backend B>() { pack_quantized_weight<B>(conv, host.bytes(), device); });
  return conv;
}

BlockConv quantized_block_conv(const QuantizedTask& task) {
  const QuantizedConv2d& conv = task.conv;
  return {.plan = task.plan,
          .isa = matrix_isa(conv.type),
          .x = task.x,
          .packed = conv.packed.bytes(),
          .y = task.y,
          .epilogue = {.type = conv.type,
                       .dtype = DType::u8,
                       .scale = conv.scale.defined() ? conv.scale.data<float>() : nullptr,
                       .bias = conv.bias.data<float>(),
                       .residual = task.residual,
                       .activation = task.activation,
                       .result = conv.result,
                       .residual_values = task.residual_values},
          .padding_value = static_cast<std::uint8_t>(conv.input.zero)};
}

template <>
void quantized_conv2d_kernel<Backend::cpu>(const QuantizedTask& task, StreamView) {
  block_conv2d(quantized_block_conv(task));
}

Tensor quantized_conv2d(const QuantizedConv2d& conv, const Tensor& x, FusedActivation activation,
                        const QuantizedResidual& residual) {
  const DType dtype = conv.type == MatrixType::int8 ? DType::u8 : DType::bf16;
  const Device device = common_device("quantized_conv2d", {&x, &conv.bias});
  check(x.dtype() == dtype && x.rank() == 4,
        "[quantized_conv2d] expected images (n, height, width, channels) of {}, got {} of {}", name_of(dtype),
        x.shape(), name_of(x.dtype()));
  const Conv2dPlan plan = quantized_plan(conv, x.shape());
  Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.filters}, DType::u8, device);
  if (residual.stored.defined()) {
    common_device("quantized_conv2d", {&x, &residual.stored});
    check(residual.stored.dtype() == DType::u8 && residual.stored.shape() == y.shape(),
          "[quantized_conv2d] expected a residual of shape {} of u8, got {} of {}", y.shape(),
          residual.stored.shape(), name_of(residual.stored.dtype()));
  }
  if (y.numel() == 0) return y;
  const Tensor images = x.detach().contiguous();
  const Tensor added = residual.stored.defined() ? residual.stored.contiguous() : Tensor();
  on_backend(device, "quantized_conv2d", [&]<Backend B>() {
    quantized_conv2d_kernel<B>({.plan = plan,
                                .conv = conv,
                                .x = images.bytes(),
                                .y = y.bytes(),
                                .residual = added.defined() ? added.bytes() : nullptr,
                                .residual_values = residual.values,
                                .activation = activation},
                               current_stream(device));
  });
  return y;
}

template <>
void quantized_max_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, std::uint8_t* to,
                                               const std::uint8_t* from, StreamView) {
  const YX in = plan.in, out = plan.out, kernel = plan.kernel;
  const Window& window = plan.window;
  const std::int64_t channels = plan.channels;
  // The window of an output pixel.
  struct Taps {
    IndexRange rows, columns;
    const std::uint8_t* image;
  };
  const auto max_of = [&]<class T>(const Taps& taps, std::int64_t channel, std::uint8_t* result)
      __attribute__((always_inline)) {
    T best{};
    for (std::int64_t v = taps.rows.begin; v < taps.rows.end; ++v)
      for (std::int64_t u = taps.columns.begin; u < taps.columns.end; ++u) {
        T pixel;
        std::memcpy(&pixel, taps.image + (v * in.x + u) * channels + channel, sizeof(T));
        best = best > pixel ? best : pixel;
      }
    std::memcpy(result + channel, &best, sizeof(T));
  };
  parallel_for(plan.images * out.y, 1, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      constexpr auto lanes = static_cast<std::int64_t>(bytes);
      for (std::int64_t line = begin; line < end; ++line)
        for (std::int64_t column = 0; column < out.x; ++column) {
          const std::int64_t top = line % out.y * window.stride.y - window.padding.y,
                             left = column * window.stride.x - window.padding.x;
          const Taps taps{{std::max<std::int64_t>(top, 0), std::min(top + kernel.y, in.y)},
                          {std::max<std::int64_t>(left, 0), std::min(left + kernel.x, in.x)},
                          from + line / out.y * in.y * in.x * channels};
          std::uint8_t* const result = to + (line * out.x + column) * channels;
          std::int64_t c = 0;
          for (; c + lanes <= channels; c += lanes)
            max_of.template operator()<Vector<std::uint8_t, bytes>>(taps, c, result);
          for (; c < channels; ++c) max_of.template operator()<std::uint8_t>(taps, c, result);
        }
    });
  });
}

template <>
void quantized_stem_kernel<Backend::cpu>(const QuantizedTask& task, DType dtype, const PoolPlan& pool,
                                         StreamView stream) {
  expect(dtype == DType::bf16);
  const Buffer values(static_cast<std::size_t>(sizes_of(task.plan).y), stream);
  QuantizedTask conv = task;
  conv.y = values.data();
  quantized_conv2d_kernel<Backend::cpu>(conv, stream);
  quantized_max_pool2d_kernel<Backend::cpu>(pool, reinterpret_cast<std::uint8_t*>(task.y),
                                            reinterpret_cast<const std::uint8_t*>(values.data()), stream);
}

Tensor quantized_stem(const QuantizedConv2d& conv, const Tensor& x, YX pool_kernel,
                      const Window& pool_window) {
  const Device device = common_device("quantized_stem", {&x, &conv.bias});
  check(conv.type == MatrixType::bf16 &&
            (x.dtype() == DType::bf16 || (device.is_cuda() && x.dtype() == DType::f32)),
        "[quantized_stem] expected images of bf16, got {}", name_of(x.dtype()));
  const Conv2dPlan plan = quantized_plan(conv, x.shape());
  const PoolPlan pool = pool_plan(plan.images, plan.out, plan.filters, pool_kernel, pool_window);
  Tensor y = Tensor::empty({plan.images, pool.out.y, pool.out.x, plan.filters}, DType::u8, device);
  if (y.numel() == 0) return y;
  const Tensor images = x.detach().contiguous();
  on_backend(device, "quantized_stem", [&]<Backend B>() {
    quantized_stem_kernel<B>({.plan = plan,
                              .conv = conv,
                              .x = images.bytes(),
                              .y = y.bytes(),
                              .activation = FusedActivation::relu},
                             images.dtype(), pool, current_stream(device));
  });
  return y;
}

Tensor with_whole_groups(const Tensor& x) {
  check(x.rank() == 4 && x.device() == cpu_device && is_floating(x.dtype()),
        "[with_whole_groups] expected floating images (n, height, width, channels) on the CPU, got {} of {}",
        x.shape(), name_of(x.dtype()));
  const std::int64_t channels = x.size(3), wide = round_up(channels, channel_group),
                     pixels = x.size(0) * x.size(1) * x.size(2);
  if (channels == wide) return cast(x, DType::bf16);
  const Tensor from = cast(x, DType::bf16).contiguous();
  Tensor y = Tensor::empty({x.size(0), x.size(1), x.size(2), wide}, DType::bf16);
  const auto pixel_bytes = static_cast<std::size_t>(channels) * sizeof(BFloat16);
  parallel_for(pixels, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
    const BFloat16* pixel = from.data<BFloat16>() + begin * channels;
    BFloat16* to = y.data<BFloat16>() + begin * wide;
    if (channels == 3)  // copies of a constant size are a few instructions
      for (std::int64_t p = begin; p < end; ++p, pixel += 3, to += 4) {
        to[3] = BFloat16(0.0f);
        std::memcpy(to, pixel, 3 * sizeof(BFloat16));
      }
    else
      for (std::int64_t p = begin; p < end; ++p, pixel += channels, to += wide) {
        std::fill_n(to, wide, BFloat16(0.0f));
        std::memcpy(to, pixel, pixel_bytes);
      }
  });
  return y;
}

Tensor quantized_max_pool2d(const Tensor& x, YX kernel, const Window& window) {
  check_quantized_images("max_pool2d", x);
  const PoolPlan plan = pool_plan(x.size(0), {x.size(1), x.size(2)}, x.size(3), kernel, window);
  Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.channels}, DType::u8, x.device());
  if (y.numel() == 0) return y;
  const Tensor images = x.contiguous();
  on_backend(x.device(), "max_pool2d", [&]<Backend B>() {
    quantized_max_pool2d_kernel<B>(plan, y.data<std::uint8_t>(), images.data<std::uint8_t>(),
                                   current_stream(x.device()));
  });
  return y;
}

template <>
void quantized_image_mean_kernel<Backend::cpu>(const PoolPlan& plan, float* means, const std::uint8_t* x,
                                               Quantization values, StreamView) {
  const std::int64_t pixels = plan.in.y * plan.in.x, channels = plan.channels;
  parallel_for(plan.images, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> sums(static_cast<std::size_t>(channels));
    for (std::int64_t image = begin; image < end; ++image) {
      std::ranges::fill(sums, 0);
      const std::uint8_t* pixel = x + image * pixels * channels;
      for (std::int64_t p = 0; p < pixels; ++p, pixel += channels)
        for (std::int64_t c = 0; c < channels; ++c) sums[static_cast<std::size_t>(c)] += pixel[c];
      for (std::int64_t c = 0; c < channels; ++c)
        means[image * channels + c] = values.scale * (static_cast<float>(sums[static_cast<std::size_t>(c)]) /
                                                          static_cast<float>(pixels) -
                                                      values.zero);
    }
  });
}

Tensor quantized_image_mean(const Tensor& x, Quantization values) {
  check_quantized_images("image_mean", x);
  const PoolPlan plan{
      .images = x.size(0), .channels = x.size(3), .in = {x.size(1), x.size(2)}, .dtype = DType::u8};
  Tensor means = Tensor::empty({plan.images, plan.channels}, DType::f32, x.device());
  if (means.numel() == 0) return means;
  const Tensor images = x.contiguous();
  on_backend(x.device(), "image_mean", [&]<Backend B>() {
    quantized_image_mean_kernel<B>(plan, means.data<float>(), images.data<std::uint8_t>(), values,
                                   current_stream(x.device()));
  });
  return means;
}

}  // namespace tandem::detail
