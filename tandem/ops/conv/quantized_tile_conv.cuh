// Convolution of 8-bit images on Hopper's tensor cores: u8 · s8 products with wgmma, images, weight, residual
// and result copied by TMA. For whole groups of 64 channels and filters.
#pragma once

#include <vector>

#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {

// `weight` is (out, kernel y, kernel x, channels).
bool is_quantized_tile_conv_applicable(const Shape& weight, const Conv2dOptions& options, Device device);

// The rows of the weight, one per filter, in the order of the products' columns.
std::vector<std::int8_t> order_tile_weight(const Shape& shape, const std::int8_t* weight);

// False, without a result, where TMA cannot address the operands.
bool quantized_tile_conv2d(const QuantizedTask& task, StreamView stream);

}  // namespace tandem::detail
