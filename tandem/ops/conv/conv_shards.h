// Convolutions of a part of a batch that is cut into shards (ops/shard_scope.h).
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/shard_sums.h"

namespace tandem::detail {

inline Shape output_shape(const Conv2dPlan& plan) {
  return {plan.images, plan.out.y, plan.out.x, plan.filters};
}

// Calls convolve(plan of a shard, its images of `out`, its images of the operands) for each shard of this
// part on a GPU; once for all images on the CPU or without a scope, and not at all if `out` has no elements.
// Tensors are contiguous and have the images in axis 0; operands may be empty handles.
template <std::size_t count, class Convolve>
void for_each_vendor_shard(const Conv2dPlan& plan, const Tensor& out, const Tensor* const (&operands)[count],
                           const Convolve& convolve) {
  if (out.numel() == 0) return;
  const auto slices = [&](const auto& slice_of) {
    std::array<Tensor, count> result;
    for (std::size_t i = 0; i < count; ++i)
      if (operands[i]->defined()) result[i] = slice_of(*operands[i]);
    return result;
  };
  const ShardPart* const part = vendor_part(out.device());
  if (!part)
    return convolve(plan, out, std::span<const Tensor>(slices([](const Tensor& all) { return all; })));
  for (const IndexRange images : shard_ranges(*part, plan.images, "conv2d")) {
    if (images.count() == 0) continue;
    Conv2dPlan shard = plan;
    shard.images = images.count();
    write_aligned(out.slice(0, images.begin, images.end), [&](const Tensor& to) {
      const auto from = slices([&](const Tensor& all) { return aligned_slice(all, images); });
      convolve(shard, to, std::span<const Tensor>(from));
    });
  }
}

}  // namespace tandem::detail
