// Convolution of images (what the field calls so: a correlation), NHWC. The weight lies as the images do, a
// filter's channels innermost; weight files have PyTorch's order (nn/conv2d.h converts).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/window.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct Conv2dOptions {
  Window window = {};
  std::int64_t groups = 1;
};

// x (n, height, width, channels), weight (out, kernel y, kernel x, channels / groups), bias (out) or an empty
// handle. Gives (n, height', width', out). f32, f64, bf16; x in bf16 may come with an f32 weight and bias,
// which are rounded on the way, and whose gradients are f32. matmul_precision() holds here too.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

// Everything a kernel needs to know; no size is 0.
struct Conv2dPlan {
  std::int64_t images = 0, channels = 0, filters = 0, groups = 1;
  YX in = {}, kernel = {}, out = {};
  Window window = {};
  DType dtype =
      DType::f32;  // of x, the weight, y and their gradients, but for the weight's gradient in bf16: f32
  MatmulPrecision precision = MatmulPrecision::fp32;

  friend bool operator==(const Conv2dPlan&, const Conv2dPlan&) = default;
};

// Elements of x, y and the weight.
struct Conv2dSizes {
  std::int64_t x, y, weight;
};
inline Conv2dSizes sizes_of(const Conv2dPlan& plan) {
  return {plan.images * plan.in.y * plan.in.x * plan.channels,
          plan.images * plan.out.y * plan.out.x * plan.filters,
          plan.filters * plan.kernel.y * plan.kernel.x * (plan.channels / plan.groups)};
}

// Error for shapes and options that do not fit; images may be 0.
Conv2dPlan conv2d_plan(const Tensor& x, const Shape& weight, const Conv2dOptions& options);

// bias, of the same dtype, may be null.
template <Backend B>
void conv2d_kernel(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                   const std::byte* bias, StreamView stream);

// The gradients of x and of the weight, from that of y.
template <Backend B>
void conv2d_input_gradient_kernel(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                                  const std::byte* weight, StreamView stream);
template <Backend B>
void conv2d_weight_gradient_kernel(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                                   const std::byte* x, StreamView stream);

}  // namespace tandem
