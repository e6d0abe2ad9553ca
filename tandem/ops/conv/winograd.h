// Winograd convolution F(4×4, 3×3) on the CPU, for f32 images and 3×3 filters at stride 1: a quarter of the
// multiplications. Results are computed in tiles of 4×4: input tiles and filters are transformed, multiplied
// as 36 matrix products, and the products transformed back. The bits do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// Whether the algorithm supports this convolution, and whether it is faster than im2col for these images.
bool is_winograd_applicable(const Conv2dPlan& plan);
bool is_winograd_profitable(const Conv2dPlan& plan);

std::int64_t winograd_weight_size(const Conv2dPlan& plan);
void transform_winograd_weight(const Conv2dPlan& plan, float* transformed, const float* weight);

// y = conv2d(x) with the transformed weight, then the epilogue, whose residual has the layout of y.
void winograd_conv2d(const Conv2dPlan& plan, float* y, const float* x, const float* transformed,
                     const RowEpilogue<float>& epilogue);
// The same with the weight as it is, which is transformed in between. The same bits.
void winograd_conv2d_once(const Conv2dPlan& plan, float* y, const float* x, const float* weight,
                          const RowEpilogue<float>& epilogue);

void winograd_input_gradient(const Conv2dPlan& plan, float* dx, const float* dy, const float* weight);
void winograd_weight_gradient(const Conv2dPlan& plan, float* dweight, const float* dy, const float* x);

}  // namespace tandem::detail
