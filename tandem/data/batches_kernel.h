// The kernel behind fill_order(), and the sample at a position as a functor for any device.
#pragma once

#include <cstdint>

#include "tandem/data/batches.h"
#include "tandem/data/shuffle.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

struct Draw {
  std::int32_t sample = -1;
  // What its random arguments depend on besides the seed and the epoch: the sample, and in balanced sampling
  // how often it was drawn before.
  std::uint32_t key = 0;
};

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
  constexpr Draw draw(std::int64_t position, Shuffle& current, std::int64_t& pass) const {
    if (plan.balanced.classes > 0) return balanced_draw(position);
    const auto at = static_cast<std::uint32_t>(position % plan.samples);
    if (!plan.shuffle) return {static_cast<std::int32_t>(at), at};
    if (position / plan.samples != pass) {
      pass = position / plan.samples;
      current = shuffle(pass);
    }
    const std::uint32_t sample = current(at);
    return {static_cast<std::int32_t>(sample), sample};
  }

  // On the host only, where the table is.
  constexpr Draw balanced_draw(std::int64_t position) const {
    const ClassTable& table = plan.balanced;
    const std::int64_t group = position / table.classes;
    const Shuffle classes(table.classes, plan.seed ^ class_stream, epoch, static_cast<std::uint32_t>(group));
    const std::uint32_t one = classes(static_cast<std::uint32_t>(position % table.classes));
    const std::int64_t begin = table.begin[one], count = table.begin[one + 1] - begin;
    const Shuffle samples(static_cast<std::uint32_t>(count), plan.seed + (one + 1) * sample_stream, epoch,
                          static_cast<std::uint32_t>(group / count));
    const std::int32_t sample = table.samples[begin + samples(static_cast<std::uint32_t>(group % count))];
    return {sample, static_cast<std::uint32_t>(sample + group / count * plan.samples)};
  }

  // At a position of the plan's part.
  constexpr Draw draw_local(std::int64_t local, Shuffle& current, std::int64_t& pass) const {
    return draw(plan.global_position(local), current, pass);
  }

 private:
  // Make the random numbers of the order of classes, and of the samples of each, differ from others.
  static constexpr std::uint64_t class_stream = 0x636c6173736573u, sample_stream = 0x9e3779b97f4a7c15u;
};

constexpr SampleOrder sample_order(const BatchPlan& plan, std::int64_t epoch) {
  return {plan, static_cast<std::uint32_t>(epoch)};
}

template <Backend B>
void order_kernel(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, std::int32_t* out,
                  std::int64_t count, StreamView stream);

}  // namespace tandem::detail
