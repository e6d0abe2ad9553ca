// The kernel behind fill_order(), and the sample at a position as a functor for any device.
#pragma once

#include <cstdint>

#include "tandem/data/batches.h"
#include "tandem/data/shuffle.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

// The sample at a position. The caller keeps the shuffle of the last pass and its index between calls, since
// making a shuffle costs more than evaluating it.
struct SampleOrder {
  std::uint32_t samples;
  std::uint64_t seed;
  std::uint32_t epoch;
  bool shuffled;

  constexpr std::int32_t operator()(std::int64_t position, Shuffle& shuffle, std::int64_t& pass) const {
    if (!shuffled) return static_cast<std::int32_t>(position % samples);
    if (position / samples != pass) {
      pass = position / samples;
      shuffle = Shuffle(samples, seed, epoch, static_cast<std::uint32_t>(pass));
    }
    return static_cast<std::int32_t>(shuffle(static_cast<std::uint32_t>(position % samples)));
  }
};

constexpr SampleOrder sample_order(const BatchPlan& plan, std::int64_t epoch) {
  return {static_cast<std::uint32_t>(plan.samples), plan.seed, static_cast<std::uint32_t>(epoch),
          plan.shuffle};
}

template <Backend B>
void order_kernel(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, std::int32_t* out,
                  std::int64_t count, StreamView stream);

}  // namespace tandem::detail
