// The kernels behind quantized_conv.h, of all backends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/index_range.h"
#include "tandem/ops/conv/pool_kernel.h"
#include "tandem/ops/conv/quantized_conv.h"

namespace tandem::detail {

struct BlockConv;

// One convolution of u8. Sizes are > 0; the plan's dtype is that of no operand.
struct QuantizedTask {
  Conv2dPlan plan;
  const QuantizedConv2d& conv;
  const std::byte* x;
  std::byte* y;
  const std::byte* residual = nullptr;
  Quantization residual_values = {};
  FusedActivation activation = FusedActivation::none;  // none or ReLU
};

// Throws Error unless x is u8 and of rank 4.
void check_quantized_images(const char* op, const Tensor& x);
Conv2dPlan quantized_plan(const QuantizedConv2d& conv, const Shape& images);
// On the CPU.
BlockConv quantized_block_conv(const QuantizedTask& task);

// The numbers of an epilogue: everything is in steps of the result, before it is rounded and clamped. With
// the columns' numbers below, a value is shift + scale · sum + residual_scale · residual, rounded twice.
struct QuantizedEpilogue {
  float inverse;  // of the scale of the result
  float zero;
  float residual_scale;
  float residual_shift;  // what the residual's zero stands for
  bool has_min;          // values below `zero` become `zero`; other values are clamped to 0 … 255 only
};

inline QuantizedEpilogue epilogue_of(const QuantizedTask& task) {
  const float inverse = 1 / task.conv.result.scale, residual_scale = task.residual_values.scale * inverse;
  return {.inverse = inverse,
          .zero = task.conv.result.zero,
          .residual_scale = residual_scale,
          .residual_shift = task.residual ? task.residual_values.zero * residual_scale : 0.0f,
          .has_min = task.activation == FusedActivation::relu && task.conv.result.zero > 0};
}

// Packs the weight, (out, kernel y, kernel x, channels) on the CPU, into conv.packed.
template <Backend B>
void pack_quantized_weight(QuantizedConv2d& conv, const std::int8_t* weight, Device device);

// Images in a floating dtype.
struct FloatingImages {
  const std::byte* data;
  DType dtype;  // f32 or bf16
  std::int64_t pixels, channels;
};
void check_floating_images(const char* op, const Tensor& x);
FloatingImages floating_images(const Tensor& contiguous);
// `channels` of every pixel are written, at least as many as there are.
template <Backend B>
void quantize_images_kernel(const FloatingImages& images, Quantization values, std::int64_t channels,
                            std::uint8_t* y, StreamView stream);

template <Backend B>
void quantized_conv2d_kernel(const QuantizedTask& task, StreamView stream);

// The convolution of a ResNet's images and the pooling after it. `task.x` does not matter, and `task.y` are
// the pooled values. On CUDA only.
template <Backend B>
void quantized_stem_kernel(const QuantizedTask& task, const FloatingImages& images, const PoolPlan& pool,
                           StreamView stream);

// Parts of quantize_images_kernel(), quantized_max_pool2d_kernel() and quantized_image_mean_kernel() on the
// CPU, which do not throw. Pixels and lines are those of all images, one image after another.
void quantize_pixels(const FloatingImages& images, Quantization values, std::int64_t channels,
                     std::uint8_t* y, IndexRange pixels);
// Of the result; `scratch` has in.x · channels bytes.
void max_pool_lines(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x, IndexRange lines,
                    std::uint8_t* scratch);
// Parts are groups of channels of an image.
inline constexpr std::int64_t mean_channels = 64;
void mean_parts(const PoolPlan& plan, float* means, const std::uint8_t* x, Quantization values,
                IndexRange parts);

// Throws Error for windows that the op does not have. `in` is the size of the images.
PoolPlan quantized_pool_plan(std::int64_t images, YX in, std::int64_t channels, YX kernel,
                             const Window& window);

template <Backend B>
void quantized_max_pool2d_kernel(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x,
                                 StreamView stream);

template <Backend B>
void quantized_image_mean_kernel(const PoolPlan& plan, float* y, const std::uint8_t* x, Quantization values,
                                 StreamView stream);

}  // namespace tandem::detail
