// Pooling of NHWC images: the greatest value or the mean of every window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/window.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// x (n, height, width, channels), f32, f64 or bf16. As in PyTorch: what lies outside the image never wins,
// NaN does; of equal values the first, row by row, gets the gradient. A padding of more than half the kernel
// is an Error.
Tensor max_pool2d(const Tensor& x, YX kernel, const Window& window);

// What lies outside counts as zeros (PyTorch's count_include_pad). No dilation.
Tensor avg_pool2d(const Tensor& x, YX kernel, const Window& window);

// The mean of each of out.y × out.x parts, which overlap by a row or column where the size does not divide.
Tensor adaptive_avg_pool2d(const Tensor& x, YX out);

// A window's place in a pooled image; sizes are not 0.
struct PoolPlan {
  std::int64_t images = 0, channels = 0;
  YX in = {}, kernel = {}, out = {};
  Window window = {};
  DType dtype = DType::f32;
};

// winners: for each result, which place of its window it came from (y · kernel.x + x), kept for the gradient;
// may be null. One byte each: kernels of more than 256 places are an Error.
template <Backend B>
void max_pool2d_kernel(const PoolPlan& plan, std::byte* y, std::uint8_t* winners, const std::byte* x,
                       StreamView stream);
template <Backend B>
void max_pool2d_gradient_kernel(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                const std::uint8_t* winners, StreamView stream);

// adaptive: plan.kernel and plan.window are not used, parts follow from plan.in and plan.out.
template <Backend B>
void avg_pool2d_kernel(const PoolPlan& plan, bool adaptive, std::byte* y, const std::byte* x,
                       StreamView stream);
template <Backend B>
void avg_pool2d_gradient_kernel(const PoolPlan& plan, bool adaptive, std::byte* dx, const std::byte* dy,
                                StreamView stream);

}  // namespace tandem
