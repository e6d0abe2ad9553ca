// Depthwise convolution on CUDA, in f32 and bf16 with sums in f32, for the windows of mobile networks. Memory
// is their limit: a thread has two adjacent channels of a strip of columns and goes down its rows, so that
// most values are read from DRAM once and only a few are kept.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// 3×3 or 5×5 with stride 1 or 2 and a padding of half the kernel.
bool is_depthwise_on_cuda(const Conv2dPlan& plan);

// The epilogue's bias is f32.
void depthwise_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                      const Conv2dEpilogue& epilogue, StreamView stream);
void depthwise_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                              const std::byte* weight, StreamView stream);
// dweight is f32 also for bf16 images. Parts of the rows are summed in a fixed order.
void depthwise_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                               const std::byte* x, StreamView stream);

}  // namespace tandem::detail
