// Winograd convolution F(4×4, 3×3) on CUDA, for f32 images and 3×3 filters at stride 1, in full f32: cuDNN's
// f32 kernels for NHWC do four times as many multiplications. The transforms use one thread per tile and
// channel; cuBLAS computes the 36 products between them.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// True where is_winograd_profitable() (winograd.h) holds and products must be full f32.
bool is_winograd_profitable_on_cuda(const Conv2dPlan& plan);

void winograd_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                     const Conv2dEpilogue& epilogue, StreamView stream);
void winograd_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                             const std::byte* weight, StreamView stream);
void winograd_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                              const std::byte* x, StreamView stream);

}  // namespace tandem::detail
