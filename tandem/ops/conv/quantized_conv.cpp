#include "tandem/ops/conv/quantized_conv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/index_range.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
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

// From floats to levels, to nearest, ties to even: beside 1.5 · 2²³ floats are whole numbers, and their bits
// plus n are those of the number plus n.
class Levels {
 public:
  explicit Levels(Quantization values)
      : inverse_(1 / values.scale),
        min_(-values.zero),
        max_(255 - values.zero),
        shift_(static_cast<std::int32_t>(values.zero) - whole_numbers_bits) {}

  template <std::size_t bytes, class T>
  [[gnu::always_inline]] void store(std::uint8_t* to, const T* from, std::int64_t count) const {
    constexpr auto lanes = static_cast<std::int64_t>(bytes / sizeof(float));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store_lanes<bytes>(to + i, from + i);
    if (i == count) return;
    T rest[lanes] = {};
    std::uint8_t stored[lanes];
    std::copy_n(from + i, count - i, rest);
    store_lanes<bytes>(stored, rest);
    std::copy_n(stored, count - i, to + i);
  }

 private:
  static constexpr float whole_numbers = 12582912.0f;
  static constexpr std::int32_t whole_numbers_bits = 0x4B400000;

  template <std::size_t bytes>
  [[gnu::always_inline]] static Vector<float, bytes> load(const float* from) {
    return *reinterpret_cast<const Vector<float, bytes>*>(from);
  }
  template <std::size_t bytes>
  [[gnu::always_inline]] static Vector<float, bytes> load(const BFloat16* from) {
    const auto bits = *reinterpret_cast<const Vector<std::uint16_t, bytes / 2>*>(from);
    return reinterpret_cast<Vector<float, bytes>>(__builtin_convertvector(bits, Vector<std::uint32_t, bytes>)
                                                  << 16);
  }
  template <std::size_t bytes, class T>
  [[gnu::always_inline]] void store_lanes(std::uint8_t* to, const T* from) const {
    Vector<float, bytes> value = load<bytes>(from) * inverse_;
    value = value > min_ ? value : min_ - Vector<float, bytes>{};  // of NaN, too
    value = value < max_ ? value : max_ - Vector<float, bytes>{};
    const auto levels = reinterpret_cast<Vector<std::int32_t, bytes>>(value + whole_numbers) + shift_;
    *reinterpret_cast<Vector<std::uint8_t, bytes / 4>*>(to) =
        __builtin_convertvector(levels, Vector<std::uint8_t, bytes / 4>);
  }

  float inverse_, min_, max_;
  std::int32_t shift_;
};

// to[i] = the maximum of from[i], from[i + step] and so on, `taps` of them.
template <std::size_t bytes>
[[gnu::always_inline]] inline void store_maxima(std::uint8_t* to, const std::uint8_t* from, std::int64_t step,
                                                std::int64_t taps, std::int64_t count) {
  constexpr auto lanes = static_cast<std::int64_t>(bytes);
  using Bytes = Vector<std::uint8_t, bytes>;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Bytes best = *reinterpret_cast<const Bytes*>(from + i);
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      const Bytes next = *reinterpret_cast<const Bytes*>(from + i + tap * step);
      best = next > best ? next : best;
    }
    *reinterpret_cast<Bytes*>(to + i) = best;
  }
  for (; i < count; ++i) {
    to[i] = from[i];
    for (std::int64_t tap = 1; tap < taps; ++tap) to[i] = std::max(to[i], from[i + tap * step]);
  }
}

// Where window i lies on an axis, without padding.
[[gnu::always_inline]] inline IndexRange window_of(std::int64_t i, std::int64_t kernel, std::int64_t stride,
                                                   std::int64_t padding, std::int64_t in) {
  const std::int64_t begin = i * stride - padding;
  return {std::max<std::int64_t>(begin, 0), std::min(begin + kernel, in)};
}

void quantize_elements(std::uint8_t* to, const FloatingImages& images, std::int64_t first, std::int64_t count,
                       const Levels& levels) {
  on_dtype(TypeList<float, BFloat16>{}, images.dtype, "quantize_images", [&]<class T>() {
    const T* const from = reinterpret_cast<const T*>(images.data) + first;
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { levels.store<bytes>(to, from, count); });
  });
}

}  // namespace

PoolPlan quantized_pool_plan(std::int64_t images, YX in, std::int64_t channels, YX kernel,
                             const Window& window) {
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

void check_floating_images(const char* op, const Tensor& x) {
  check((x.dtype() == DType::f32 || x.dtype() == DType::bf16) && x.rank() == 4,
        "[{}] expected images (n, height, width, channels) of f32 or bf16, got {} of {}", op, x.shape(),
        name_of(x.dtype()));
}

FloatingImages floating_images(const Tensor& contiguous) {
  return {.data = contiguous.bytes(),
          .dtype = contiguous.dtype(),
          .pixels = contiguous.size(0) * contiguous.size(1) * contiguous.size(2),
          .channels = contiguous.size(3)};
}

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
                       .residual_values = task.residual_values},
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

void max_pool_lines(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x, IndexRange lines,
                    std::uint8_t* scratch) {
  const YX in = plan.in, out = plan.out, kernel = plan.kernel;
  const Window& window = plan.window;
  const std::int64_t channels = plan.channels, line_bytes = in.x * channels;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    std::uint8_t* result = y + lines.begin * out.x * channels;
    for (std::int64_t line = lines.begin; line < lines.end; ++line) {
      const IndexRange rows = window_of(line % out.y, kernel.y, window.stride.y, window.padding.y, in.y);
      store_maxima<bytes>(scratch, x + (line / out.y * in.y + rows.begin) * line_bytes, line_bytes,
                          rows.count(), line_bytes);
      for (std::int64_t column = 0; column < out.x; ++column, result += channels) {
        const IndexRange columns = window_of(column, kernel.x, window.stride.x, window.padding.x, in.x);
        store_maxima<bytes>(result, scratch + columns.begin * channels, channels, columns.count(), channels);
      }
    }
  });
}

template <>
void quantized_max_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x,
                                               StreamView) {
  parallel_for(plan.images * plan.out.y, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint8_t> scratch(static_cast<std::size_t>(plan.in.x * plan.channels));
    max_pool_lines(plan, y, x, {begin, end}, scratch.data());
  });
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

void quantize_pixels(const FloatingImages& images, Quantization values, std::int64_t channels,
                     std::uint8_t* y, IndexRange pixels) {
  constexpr std::int64_t chunk = 1024;  // elements
  const Levels levels(values);
  const std::int64_t given = images.channels;
  if (given == channels)
    return quantize_elements(y + pixels.begin * given, images, pixels.begin * given, pixels.count() * given,
                             levels);
  expect(given <= chunk);
  std::uint8_t dense[chunk];
  std::uint8_t* to = y + pixels.begin * channels;
  for (std::int64_t first = pixels.begin; first < pixels.end; first += chunk / given) {
    const std::int64_t count = std::min(chunk / given, pixels.end - first);
    quantize_elements(dense, images, first * given, count * given, levels);
    for (std::int64_t p = 0; p < count; ++p, to += channels)
      for (std::int64_t c = 0; c < channels; ++c)
        to[c] = c < given ? dense[p * given + c] : static_cast<std::uint8_t>(values.zero);
  }
}

template <>
void quantize_images_kernel<Backend::cpu>(const FloatingImages& images, Quantization values,
                                          std::int64_t channels, std::uint8_t* y, StreamView) {
  parallel_for(images.pixels, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
    quantize_pixels(images, values, channels, y, {begin, end});
  });
}

Tensor quantize_images(const Tensor& x, Quantization values, std::int64_t channels) {
  check_floating_images("quantize_images", x);
  expect(x.size(3) > 0 && channels >= x.size(3));
  Tensor y = Tensor::empty({x.size(0), x.size(1), x.size(2), channels}, DType::u8, x.device());
  if (y.numel() == 0) return y;
  const Tensor from = x.detach().contiguous();
  on_backend(x.device(), "quantize_images", [&]<Backend B>() {
    quantize_images_kernel<B>(floating_images(from), values, channels, y.data<std::uint8_t>(),
                              current_stream(x.device()));
  });
  return y;
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

Tensor quantized_max_pool2d(const Tensor& x, YX kernel, const Window& window) {
  check_quantized_images("max_pool2d", x);
  const PoolPlan plan = quantized_pool_plan(x.size(0), {x.size(1), x.size(2)}, x.size(3), kernel, window);
  Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.channels}, DType::u8, x.device());
  if (y.numel() == 0) return y;
  const Tensor images = x.contiguous();
  on_backend(x.device(), "max_pool2d", [&]<Backend B>() {
    quantized_max_pool2d_kernel<B>(plan, y.data<std::uint8_t>(), images.data<std::uint8_t>(),
                                   current_stream(x.device()));
  });
  return y;
}

void mean_parts(const PoolPlan& plan, float* means, const std::uint8_t* x, Quantization values,
                IndexRange parts) {
  const std::int64_t pixels = plan.in.y * plan.in.x, channels = plan.channels,
                     groups = ceil_div(channels, mean_channels);
  for (std::int64_t part = parts.begin; part < parts.end; ++part) {
    const std::int64_t image = part / groups, first = part % groups * mean_channels,
                       count = std::min(mean_channels, channels - first);
    std::int32_t sums[mean_channels] = {};
    const std::uint8_t* pixel = x + image * pixels * channels + first;
    for (std::int64_t p = 0; p < pixels; ++p, pixel += channels)
      for (std::int64_t c = 0; c < count; ++c) sums[c] += pixel[c];
    for (std::int64_t c = 0; c < count; ++c)
      means[image * channels + first + c] =
          values.scale * (static_cast<float>(sums[c]) / static_cast<float>(pixels) - values.zero);
  }
}

template <>
void quantized_image_mean_kernel<Backend::cpu>(const PoolPlan& plan, float* means, const std::uint8_t* x,
                                               Quantization values, StreamView) {
  parallel_for(plan.images * ceil_div(plan.channels, mean_channels), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 mean_parts(plan, means, x, values, {begin, end});
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
