// The samples of an epoch by position, where some cannot be used: an unusable sample is replaced by the next
// one in the order of its pass.
#pragma once

#include <cstdint>

#include "tandem/data/batches_kernel.h"

namespace tandem {

class BlockOrder {
 public:
  BlockOrder(const BatchPlan& plan, std::int64_t epoch)
      : order_(detail::sample_order(plan, epoch)), shuffle_(order_.shuffle(0)) {}

  // The position of whole batches at a position of the plan's part. All other positions here are those of
  // whole batches: what replaces an unusable sample does not depend on the part.
  std::int64_t global_position(std::int64_t local) const { return order_.plan.global_position(local); }

  // The sample at a position of the epoch.
  detail::Draw at(std::int64_t position) { return order_.draw(position, shuffle_, pass_); }

  // The position whose sample replaces an unusable one at `position`: the next of the pass, cyclically.
  std::int64_t after(std::int64_t position) const {
    const std::int64_t samples = order_.plan.samples, pass = position / samples;
    return pass * samples + (position + 1) % samples;
  }

  // The first usable sample from `position` on; the sample −1 when there is none in the pass.
  template <class IsUnusable>
  detail::Draw first_usable(std::int64_t position, IsUnusable&& is_unusable) {
    for (std::int64_t tried = 0; tried < order_.plan.samples; ++tried, position = after(position))
      if (const detail::Draw draw = at(position); !is_unusable(draw.sample)) return draw;
    return {};
  }

 private:
  detail::SampleOrder order_;
  Shuffle shuffle_;
  std::int64_t pass_ = 0;
};

}  // namespace tandem
