// Convolution of f32 images by 3×3 filters at stride 1 on the CPU, by Winograd's F(4×4, 3×3): a quarter of
// the multiplications. Images are cut into tiles of 4×4 results; patches, filters and results are
// transformed, and between the transforms stand 36 matrix products. The bits do not depend on the number of
// threads.
#pragma once

#include <cstdint>

#include "tandem/ops/conv2d.h"
#include "tandem/ops/product_tile.h"

namespace tandem {

// Whether a convolution with this weight can go this way, and whether it pays for these images.
bool winograd_takes(const Conv2dPlan& plan);
bool winograd_pays(const Conv2dPlan& plan);

std::int64_t winograd_weight_size(const Conv2dPlan& plan);
void transform_winograd_weight(const Conv2dPlan& plan, float* transformed, const float* weight);

// y = conv2d(x) by the transformed weight, then the epilogue (whose residual lies as y does).
void winograd_conv2d(const Conv2dPlan& plan, float* y, const float* x, const float* transformed,
                     const RowEpilogue<float>& epilogue);

void winograd_input_gradient(const Conv2dPlan& plan, float* dx, const float* dy, const float* weight);
void winograd_weight_gradient(const Conv2dPlan& plan, float* dweight, const float* dy, const float* x);

}  // namespace tandem
