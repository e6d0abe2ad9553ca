// Convolution of f32 images by 3×3 filters at stride 1 on CUDA, by Winograd's F(4×4, 3×3), in full f32:
// cuDNN's own f32 kernels for NHWC multiply four times as often. Patches, filters and results are transformed
// by kernels of one thread a tile and channel; the 36 products between the transforms are cuBLAS's.
#pragma once

#include "tandem/ops/fixed_conv2d.h"

namespace tandem {

// Whether a convolution goes this way: where winograd_pays() (winograd.h) and products are to be f32.
bool winograd_pays_on_cuda(const Conv2dPlan& plan);

void winograd_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                     const Conv2dEpilogue& epilogue, StreamView stream);
void winograd_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                             const std::byte* weight, StreamView stream);
void winograd_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                              const std::byte* x, StreamView stream);

}  // namespace tandem
