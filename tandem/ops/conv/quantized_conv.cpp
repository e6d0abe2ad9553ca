#include "tandem/ops/conv/quantized_conv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {
namespace {

// A plan whose only use is the layout of the packed weight, which does not depend on the image size.
Conv2dPlan weight_plan(const Shape& weight, const Conv2dOptions& options) {
  const YX dilation = options.window.dilation;
  return conv2d_plan({1, dilation.y * (weight[1] - 1) + 1, dilation.x * (weight[2] - 1) + 1, weight[3]},
                     DType::bf16, weight, options);
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

}  // namespace

// Convolutions have plans for floating dtypes only.
Conv2dPlan quantized_plan(const QuantizedConv2d& conv, const Shape& images) {
  check(images.rank() == 4, "[quantized_conv2d] expected images (n, height, width, channels), got {}",
        images);
  return conv2d_plan(images, DType::bf16, conv.weight_shape, conv.options);
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
void pack_quantized_weight<Backend::cpu>(QuantizedConv2d& conv, const std::int8_t* weight, Device) {
  const Conv2dPlan plan = weight_plan(conv.weight_shape, conv.options);
  conv.packed = Tensor::empty({block_conv_weight_bytes(plan, MatrixType::int8)}, DType::u8);
  pack_block_conv_weight(plan, MatrixType::int8, conv.packed.bytes(),
                         reinterpret_cast<const std::byte*>(weight));
}

QuantizedConv2d prepack_quantized_conv2d(const QuantizedWeight& weight, const Tensor& bias,
                                         const Conv2dOptions& options, Quantization input,
                                         Quantization result) {
  check_parameters(weight.stored, DType::u8, bias, options);
  check_parameters(weight.stored, DType::u8, weight.scale, options);
  const Device device = weight.stored.device();
  const Shape& shape = weight.stored.shape();
  const std::int64_t filters = shape[0], size = weight.stored.numel() / std::max<std::int64_t>(filters, 1);
  QuantizedConv2d conv{.options = options,
                       .weight_shape = shape,
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
  on_backend(device, "quantized_conv2d",
             [&]<Backend B>() { pack_quantized_weight<B>(conv, numbers.data(), device); });
  conv.scale = conv.scale.to(device);
  conv.bias = conv.bias.to(device);
  return conv;
}

BlockConv quantized_block_conv(const QuantizedTask& task) {
  const QuantizedConv2d& conv = task.conv;
  const QuantizedEpilogue epilogue = epilogue_of(task);
  return {.plan = task.plan,
          .isa = matrix_isa(MatrixType::int8),
          .x = task.x,
          .packed = conv.packed.bytes(),
          .y = task.y,
          .epilogue = {.type = MatrixType::int8,
                       .dtype = DType::u8,
                       .scale = conv.scale.data<float>(),
                       .bias = conv.bias.data<float>(),
                       .residual = task.residual,
                       .activation = task.activation,
                       .result = conv.result,
                       .residual_values = task.residual_values,
                       .is_bounded = largest_result(conv, epilogue) < 1e9f},  // false for NaN
          .padding_value = static_cast<std::uint8_t>(conv.input.zero)};
}

template <>
void quantized_conv2d_kernel<Backend::cpu>(const QuantizedTask& task, StreamView) {
  block_conv2d(quantized_block_conv(task));
}

Tensor quantized_conv2d(const QuantizedConv2d& conv, const Tensor& x, FusedActivation activation,
                        const QuantizedResidual& residual) {
  const Device device = common_device("quantized_conv2d", {&x, &conv.bias});
  check_quantized_images("quantized_conv2d", x);
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

QuantizedWeight with_whole_groups(const QuantizedWeight& weight) {
  expect(weight.stored.dtype() == DType::u8 && weight.stored.rank() == 4);
  const Shape& shape = weight.stored.shape();
  const std::int64_t channels = shape[3], wide = round_up(channels, channel_group);
  if (weight.stored.device().is_cuda() || channels == wide) return weight;
  const Tensor from = weight.stored.contiguous();
  Tensor stored = Tensor::empty({shape[0], shape[1], shape[2], wide}, DType::u8);
  std::memset(stored.bytes(), stored_weight_zero, static_cast<std::size_t>(stored.numel()));
  for (std::int64_t i = 0; i < from.numel(); ++i)
    stored.data<std::uint8_t>()[i / channels * wide + i % channels] = from.data<std::uint8_t>()[i];
  return {stored, weight.scale};
}

Tensor quantized_stem(const QuantizedConv2d& conv, const Tensor& x, YX pool_kernel,
                      const Window& pool_window) {
  const Device device = common_device("quantized_stem", {&x, &conv.bias});
  check_floating_images("quantized_stem", x);
  if (!device.is_cuda())
    return quantized_max_pool2d(
        quantized_conv2d(conv, quantize_images(x, conv.input, conv.weight_shape[3]), FusedActivation::relu),
        pool_kernel, pool_window);
  const Conv2dPlan plan = quantized_plan(conv, x.shape());
  const PoolPlan pool = quantized_pool_plan(plan.images, plan.out, plan.filters, pool_kernel, pool_window);
  Tensor y = Tensor::empty({plan.images, pool.out.y, pool.out.x, plan.filters}, DType::u8, device);
  if (y.numel() == 0) return y;
  const Tensor images = x.detach().contiguous();
  on_backend(device, "quantized_stem", [&]<Backend B>() {
    if constexpr (B == Backend::cuda)
      quantized_stem_kernel<B>(
          {.plan = plan, .conv = conv, .x = nullptr, .y = y.bytes(), .activation = FusedActivation::relu},
          floating_images(images), pool, current_stream(device));
  });
  return y;
}

}  // namespace tandem::detail
