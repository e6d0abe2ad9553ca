// Depthwise convolution in bf16 on tensor cores. A product with a diagonal matrix of weights wastes seven of
// eight multiplications, but pixels need no conversion to f32, and a warp needs a tenth of the instructions,
// which are the limit of the kernels in depthwise.cu. An infinite value reaches the seven channels beside
// its own as NaN.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

bool is_depthwise_on_tensor_cores(const Conv2dPlan& plan, Device device);

// `flipped`: with the taps in reverse order, which is the gradient of a convolution with stride 1.
void depthwise_conv2d_on_tensor_cores(const Conv2dPlan& plan, bool flipped, std::byte* y, const std::byte* x,
                                      const std::byte* weight, const Conv2dEpilogue& epilogue,
                                      StreamView stream);

}  // namespace tandem::detail
