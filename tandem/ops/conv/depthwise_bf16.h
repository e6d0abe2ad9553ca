// Depthwise convolution of images in bf16 on the CPU, with weights in f32 as pack_depthwise_weight() leaves
// them: the results are those in f32, rounded. Tiles of the images are widened in the cache, so that memory
// holds and moves bf16 alone. The bits do not depend on the number of threads.
#pragma once

#include "tandem/core/dtype.h"
#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/fused_activation.h"

namespace tandem::detail {

struct DepthwiseEpilogue {
  const float* bias = nullptr;
  const BFloat16* residual = nullptr;
  FusedActivation activation = FusedActivation::none;
};
void depthwise_conv2d(const Conv2dPlan& plan, BFloat16* y, const BFloat16* x, const float* packed,
                      const DepthwiseEpilogue& epilogue);
void depthwise_input_gradient(const Conv2dPlan& plan, BFloat16* dx, const BFloat16* dy, const float* packed);

}  // namespace tandem::detail
