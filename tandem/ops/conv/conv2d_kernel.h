// What the convolution kernels of all backends share: the sizes of one convolution, its epilogue, and the
// kernels that conv2d() calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/fused_activation.h"
#include "tandem/ops/matmul.h"

namespace tandem::detail {

// The complete description of one convolution; kernels are called with sizes > 0 only.
struct Conv2dPlan {
  std::int64_t images = 0;
  std::int64_t channels = 0;
  std::int64_t filters = 0;
  std::int64_t groups = 1;
  YX in = {};
  YX kernel = {};
  YX out = {};
  Window window = {};
  // Of x, the weight, y and their gradients. Exception: the weight gradient of a bf16 convolution is f32.
  DType dtype = DType::f32;
  MatmulPrecision precision = MatmulPrecision::fp32;

  friend bool operator==(const Conv2dPlan&, const Conv2dPlan&) = default;
};

// Numbers of elements.
struct Conv2dSizes {
  std::int64_t x;
  std::int64_t y;
  std::int64_t weight;
};
inline Conv2dSizes sizes_of(const Conv2dPlan& plan) {
  return {plan.images * plan.in.y * plan.in.x * plan.channels,
          plan.images * plan.out.y * plan.out.x * plan.filters,
          plan.filters * plan.kernel.y * plan.kernel.x * (plan.channels / plan.groups)};
}

// Every channel has a filter of its own.
constexpr bool is_depthwise(const Conv2dPlan& plan) {
  return plan.groups > 1 && plan.groups == plan.channels && plan.groups == plan.filters;
}

// Error for shapes and options that do not match; images may be 0.
Conv2dPlan conv2d_plan(const Shape& x, DType dtype, const Shape& weight, const Conv2dOptions& options);
inline Conv2dPlan conv2d_plan(const Tensor& x, const Shape& weight, const Conv2dOptions& options) {
  return conv2d_plan(x.shape(), x.dtype(), weight, options);
}

// Applied to the sums before they are stored: y = activation(sum + bias + residual). Pointers may be null.
struct Conv2dEpilogue {
  const std::byte* bias = nullptr;
  // The bias rounded to bf16, on CUDA for bf16 images; kernels of cuDNN need it in the dtype of the images.
  const std::byte* bf16_bias = nullptr;
  const std::byte* residual = nullptr;
  FusedActivation activation = FusedActivation::none;
};

// bias has the plan's dtype and may be null.
template <Backend B>
void conv2d_kernel(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                   const std::byte* bias, StreamView stream);

template <Backend B>
void conv2d_input_gradient_kernel(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                                  const std::byte* weight, StreamView stream);
template <Backend B>
void conv2d_weight_gradient_kernel(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                                   const std::byte* x, StreamView stream);

}  // namespace tandem::detail
