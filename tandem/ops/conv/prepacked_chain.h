// The convolutions of a network with constant weights (prepacked_conv.h) in bf16, without a barrier of all
// threads after each on the CPU.
#pragma once

#include <span>

#include "tandem/ops/conv/chain_stages.h"
#include "tandem/ops/conv/prepacked_conv.h"

namespace tandem::detail {

using PrepackedStem = ConvStem<PrepackedConv2d>;
using PrepackedStep = ConvStep<PrepackedConv2d>;

// Whether the convolutions of such images are one chain: in bf16 on CPUs with instructions for it.
bool has_prepacked_chain(const Tensor& x);

// The last value, with the bits of prepacked_conv2d(), max_pool2d() and prepacked_conv2d() in a loop. For
// convolutions without groups.
Tensor prepacked_conv_chain(const PrepackedStem& stem, std::span<const PrepackedStep> steps, const Tensor& x);

}  // namespace tandem::detail
