// The first convolution of a ResNet on Hopper, 7×7 with stride 2 of images that are rounded to 8-bit
// integers, and the 3×3 pooling with stride 2 after it, in one kernel: what is pooled stays in shared memory.
#pragma once

#include <vector>

#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {

// `weight` is (out, kernel y, kernel x, channels).
bool is_quantized_stem_applicable(const Shape& weight, const Conv2dOptions& options, Device device);

// The weight in the order of the products' factors.
std::vector<BFloat16> order_stem_weight(const Shape& shape, const std::int8_t* weight);

// False, without a result, for other convolutions and poolings, and images that are too wide.
bool fused_quantized_stem(const QuantizedTask& task, const FloatingImages& images, const PoolPlan& pool,
                          StreamView stream);

}  // namespace tandem::detail
