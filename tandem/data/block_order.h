// The samples of an epoch, position by position, where some cannot be used: the place of one of those is
// taken by the next sample of its pass in the order.
#pragma once

#include <cstdint>

#include "tandem/data/batches.h"

namespace tandem {

class BlockOrder {
 public:
  BlockOrder(const BatchPlan& plan, std::int64_t epoch)
      : order_(order_of(plan, epoch)), shuffle_(order_.samples, order_.seed, order_.epoch) {}

  // Which sample stands at a position of the epoch.
  std::int32_t at(std::int64_t position) { return order_(position, shuffle_, pass_); }

  // The position of the sample that takes the place of the one at `position`.
  std::int64_t after(std::int64_t position) const {
    const std::int64_t pass = position / order_.samples;
    return pass * order_.samples + (position + 1) % order_.samples;
  }

  // The first sample from `position` on, in that sense, that is not left out; −1 when all are.
  template <class LeftOut>
  std::int32_t first_from(std::int64_t position, LeftOut&& left_out) {
    for (std::uint32_t tried = 0; tried < order_.samples; ++tried, position = after(position))
      if (const std::int32_t sample = at(position); !left_out(sample)) return sample;
    return -1;
  }

 private:
  OrderAt order_;
  Shuffle shuffle_;
  std::int64_t pass_ = 0;
};

}  // namespace tandem
