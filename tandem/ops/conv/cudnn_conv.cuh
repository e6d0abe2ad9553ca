// cuDNN convolutions. Execution plans are built once per configuration and cached. The engine is that of a
// table in the source (cudnn_plan_table.h) or the first of cuDNN's heuristic ranking, never one that was
// measured at run time: the same convolution gives the same bits in every run.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// Each returns false, and does nothing, where cuDNN has no deterministic kernel. Images with few channels go
// through space_to_depth.cuh.

// The epilogue is fused; its bias is f32, its activation none or ReLU. For many bf16 images the epilogue's
// bf16_bias is used, which adds an error of 2⁻⁹ of the bias; weights and images are rounded as much.
bool cudnn_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, StreamView stream);
bool cudnn_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream);
// dweight is f32 also for bf16 images.
bool cudnn_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream);

}  // namespace tandem::detail
