// Small exchanges between the ranks of a run.
#pragma once

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

// Gathers values of all shards for batch norms: in the CPU's memory, where values of a GPU are copied to, or
// between the GPUs.
GatherShards gather_shards_of(Group& group, std::int64_t shards);
GatherShards gather_shards_of(NcclGroup& group, std::int64_t shards);

// The sums over all ranks; the losses are order-free.
StepSums sum_over_ranks(Group& group, const StepSums& mine);

}  // namespace tandem
