// The kernels behind quantized_conv.h, of all backends.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/ops/conv/pool_kernel.h"
#include "tandem/ops/conv/quantized_conv.h"
#include "tandem/ops/conv/quantized_images.h"

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

// No result is larger before it is clamped, in steps of the result.
inline float largest_result(const QuantizedConv2d& conv, const QuantizedEpilogue& epilogue) {
  return (conv.max_sum * conv.max_scale + conv.max_bias) * epilogue.inverse + 255 +
         255 * epilogue.residual_scale + std::abs(epilogue.residual_shift);
}

// Packs the weight, (out, kernel y, kernel x, channels) on the CPU, into conv.packed.
template <Backend B>
void pack_quantized_weight(QuantizedConv2d& conv, const std::int8_t* weight, Device device);

template <Backend B>
void quantized_conv2d_kernel(const QuantizedTask& task, StreamView stream);

// The convolution of a ResNet's images and the pooling after it. `task.x` does not matter, and `task.y` are
// the pooled values. On CUDA only.
template <Backend B>
void quantized_stem_kernel(const QuantizedTask& task, const FloatingImages& images, const PoolPlan& pool,
                           StreamView stream);

}  // namespace tandem::detail
