// Convolutions of a part of a batch that is cut into shards (ops/shard_scope.h).
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

Shape output_shape(const Conv2dPlan& plan);

// Calls convolve(plan of a shard, its images of `out`, its images of the operands) for each shard of this
// part on a GPU; once for all images on the CPU or without a scope, and not at all if `out` has no elements.
// Tensors are contiguous and have the images in axis 0; operands may be empty handles.
using ConvolveShard =
    std::function<void(const Conv2dPlan& shard, const Tensor& to, std::span<const Tensor> from)>;
void for_each_vendor_shard(const Conv2dPlan& plan, const Tensor& out,
                           std::initializer_list<const Tensor*> operands, const ConvolveShard& convolve);

}  // namespace tandem::detail
