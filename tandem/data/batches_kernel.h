// The kernel behind fill_order(), and the sample at a position as a functor for any device.
#pragma once

#include <cstdint>

#include "tandem/data/batches.h"
#include "tandem/data/shuffle.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

// The sample at a position of an epoch. The caller keeps the shuffle of the last pass and its index between
// calls, since making a shuffle costs more than evaluating it.
struct SampleOrder {
  BatchPlan plan;
  std::uint32_t epoch = 0;

  constexpr Shuffle shuffle(std::int64_t pass) const {
    return Shuffle(static_cast<std::uint32_t>(plan.samples), plan.seed, epoch,
                   static_cast<std::uint32_t>(pass));
  }

  // At a position of whole batches.
  constexpr std::int32_t at(std::int64_t position, Shuffle& current, std::int64_t& pass) const {
    if (!plan.shuffle) return static_cast<std::int32_t>(position % plan.samples);
    if (position / plan.samples != pass) {
      pass = position / plan.samples;
      current = shuffle(pass);
    }
    return static_cast<std::int32_t>(current(static_cast<std::uint32_t>(position % plan.samples)));
  }

  // At a position of the plan's part.
  constexpr std::int32_t at_local(std::int64_t local, Shuffle& current, std::int64_t& pass) const {
    return at(plan.global_position(local), current, pass);
  }
};

constexpr SampleOrder sample_order(const BatchPlan& plan, std::int64_t epoch) {
  return {plan, static_cast<std::uint32_t>(epoch)};
}

template <Backend B>
void order_kernel(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, std::int32_t* out,
                  std::int64_t count, StreamView stream);

}  // namespace tandem::detail
