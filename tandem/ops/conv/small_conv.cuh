// Convolution of one or a few small images in bf16 on Hopper, where cuDNN's kernels leave most of the GPU
// idle. Blocks have small tiles of the result; where those are few too, a cluster of blocks shares the sum
// over taps and channels. The weight is read while the kernel before is still running.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

bool is_small_conv_profitable(const Conv2dPlan& plan, Device device);

// The bias is f32. `settled`: the kernel before this one writes neither the weight nor the bias.
void small_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, bool settled, StreamView stream);

}  // namespace tandem::detail
