// Which samples make up which batch, as a function of the seed, the epoch and the position: nothing is stored
// and nothing runs ahead, so a resume in the middle of an epoch meets the same batches.
#pragma once

#include <cstdint>

#include "tandem/data/shuffle.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct BatchPlan {
  std::int64_t samples = 0;  // in the training set
  std::int64_t batch_size = 16;
  std::int64_t batches_per_epoch = 0;  // 0: all of the data, the last batch holding the remainder
  std::uint64_t seed = 1;
  bool shuffle = true;  // false: samples in their order, as for evaluation

  std::int64_t steps() const {  // of an epoch
    return batches_per_epoch > 0 ? batches_per_epoch : (samples + batch_size - 1) / batch_size;
  }
  std::int64_t positions() const {  // samples seen in an epoch
    return batches_per_epoch > 0 ? batches_per_epoch * batch_size : samples;
  }
  std::int64_t rows(std::int64_t step) const {
    const std::int64_t left = positions() - step * batch_size;
    return left < batch_size ? left : batch_size;
  }
};

// Error unless there is something to train on and the sizes make sense.
void check_batch_plan(const BatchPlan& plan);

// Fills `out` (i32) with the samples at positions first, first + 1, … of an epoch. Where random batches go on
// beyond the data, they go through it again in another order.
void fill_order(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out);

template <Backend B>
void order_kernel(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, std::int32_t* out,
                  std::int64_t count, StreamView stream);

// The sample at a position, given the shuffle of the pass it belongs to last time round.
struct OrderAt {
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

constexpr OrderAt order_of(const BatchPlan& plan, std::int64_t epoch) {
  return {static_cast<std::uint32_t>(plan.samples), plan.seed, static_cast<std::uint32_t>(epoch),
          plan.shuffle};
}

}  // namespace tandem
