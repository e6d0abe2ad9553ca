// The pooling kernels behind pool.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/index_range.h"
#include "tandem/device/stream.h"
#include "tandem/ops/conv/window.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Sizes are > 0.
struct PoolPlan {
  std::int64_t images = 0;
  std::int64_t channels = 0;
  YX in = {};
  YX kernel = {};
  YX out = {};
  Window window = {};
  DType dtype = DType::f32;
};

// Error for what max_pool2d() does not take; images may be 0.
PoolPlan max_pool_plan(const Shape& x, DType dtype, YX kernel, const Window& window);

// argmax: for each output, the kernel element it came from (y · kernel.x + x), saved for the gradient; may be
// null. One byte each, so kernels have at most 256 elements.
template <Backend B>
void max_pool2d_kernel(const PoolPlan& plan, std::byte* y, std::uint8_t* argmax, const std::byte* x,
                       StreamView stream);
template <Backend B>
void max_pool2d_gradient_kernel(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                const std::uint8_t* argmax, StreamView stream);

// Lines of the result of max_pool2d_kernel() without argmax on the CPU, one image after another. Does not
// throw.
void max_pool_lines(const PoolPlan& plan, BFloat16* y, const BFloat16* x, IndexRange lines);

// adaptive: plan.kernel and plan.window are ignored; regions follow from plan.in and plan.out.
template <Backend B>
void avg_pool2d_kernel(const PoolPlan& plan, bool adaptive, std::byte* y, const std::byte* x,
                       StreamView stream);
// The means of whole images of bf16, in f32. CUDA only.
template <Backend B>
void bf16_image_mean_kernel(const PoolPlan& plan, float* y, const std::byte* x, StreamView stream);
template <Backend B>
void avg_pool2d_gradient_kernel(const PoolPlan& plan, bool adaptive, std::byte* dx, const std::byte* dy,
                                StreamView stream);

// The mean over height and width: (n, height, width, channels) → (n, channels) in f32.
Tensor image_mean(const Tensor& x);

}  // namespace tandem::detail
