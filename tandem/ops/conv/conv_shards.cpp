#include "tandem/ops/conv/conv_shards.h"

#include <vector>

#include "tandem/ops/shard_sums.h"

namespace tandem::detail {

Shape output_shape(const Conv2dPlan& plan) {
  return {plan.images, plan.out.y, plan.out.x, plan.filters};
}

void for_each_vendor_shard(const Conv2dPlan& plan, const Tensor& out,
                           std::initializer_list<const Tensor*> operands, const ConvolveShard& convolve) {
  if (out.numel() == 0) return;
  const auto slices = [&](const auto& slice_of) {
    std::vector<Tensor> result;
    for (const Tensor* operand : operands)
      result.push_back(operand->defined() ? slice_of(*operand) : Tensor());
    return result;
  };
  const ShardPart* const part = vendor_part(out.device());
  if (!part) return convolve(plan, out, slices([](const Tensor& operand) { return operand; }));
  for (const IndexRange images : shard_ranges(*part, plan.images, "conv2d")) {
    if (images.count() == 0) continue;
    Conv2dPlan shard = plan;
    shard.images = images.count();
    write_aligned(out.slice(0, images.begin, images.end), [&](const Tensor& to) {
      convolve(shard, to, slices([&](const Tensor& operand) { return aligned_slice(operand, images); }));
    });
  }
}

}  // namespace tandem::detail
