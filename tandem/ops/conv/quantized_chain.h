// The convolutions of a network in 8-bit integers (quantized_conv.h), without a barrier of all threads after
// each on the CPU.
#pragma once

#include <span>

#include "tandem/ops/conv/chain_stages.h"
#include "tandem/ops/conv/quantized_conv.h"

namespace tandem::detail {

using QuantizedStep = ConvStep<QuantizedConv2d>;

// The last value; x, u8, is what step 0 convolves. The same bits as quantized_conv2d() in a loop.
Tensor quantized_conv_chain(std::span<const QuantizedStep> steps, const Tensor& x);

using QuantizedStem = ConvStem<QuantizedConv2d>;
// quantized_image_mean(quantized_conv_chain(steps, quantized_stem(stem, x))); on the CPU all of it is one
// chain.
Tensor quantized_features(const QuantizedStem& stem, std::span<const QuantizedStep> steps, const Tensor& x);

}  // namespace tandem::detail
