// Small exchanges between the ranks of a run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/dist/group.h"
#include "tandem/dist/nccl_group.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/train/engines/engine.h"

namespace tandem {

// Rounds to a multiple of 2⁻²⁴. Sums of such values below 2²⁹ are exact, so their order does not matter: the
// loss of an epoch does not depend on the number of ranks, or on how its steps are divided into calls.
inline constexpr double order_free_rounder = 3.0 * (1 << 27);  // its last bit is 2⁻²⁴
inline double order_free(double value) {
  return value + order_free_rounder - order_free_rounder;
}

// When a value of this rank was first not finite, as Engine::first_not_finite() has it.
class FirstNotFinite {
 public:
  void begin_step() {
    ++step_;
    exchange_ = 0;
  }
  // The values of the next exchange within the step.
  void add(const Tensor& values);
  // `finite_steps`: how many steps had a finite loss, which comes after what is exchanged in a step.
  std::int64_t first(std::int64_t finite_steps) const {
    return std::min(first_, (finite_steps + 2) * step_size - 1);
  }

 private:
  static constexpr std::int64_t step_size = 1 << 20;

  std::int64_t step_ = 0, exchange_ = 0;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
};

// Gathers values of all shards for batch norms: in the CPU's memory, where values of a GPU are copied to, or
// between the GPUs. `record` gets the values of this rank; those between GPUs are not looked at.
GatherShards gather_shards_of(Group& group, std::int64_t shards, FirstNotFinite& record);
GatherShards gather_shards_of(NcclGroup& group, std::int64_t shards);

// The sums over all ranks; the losses are order-free.
StepSums sum_over_ranks(Group& group, const StepSums& mine);

}  // namespace tandem
