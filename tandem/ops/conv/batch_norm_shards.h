// Batch normalization of a part of a batch that is cut into shards (ops/shard_scope.h). The sums of each
// shard are computed alone, in f64, and joined in the order of the shards, so the bits do not depend on who
// has which shard.
#pragma once

#include <vector>

#include "tandem/ops/conv/batch_norm_kernel.h"
#include "tandem/ops/shard_scope.h"

namespace tandem::detail {

struct ShardedBatchNorm {
  const ShardPart* part;
  BatchNormShards shards;          // of the whole batch
  std::vector<IndexRange> ranges;  // the rows of the plan that each own shard has
  bool per_shard = false;          // each shard is normalized by its own statistics

  // The own shards that have statistics of their own.
  std::int64_t statistics() const { return per_shard ? part->own.count() : 1; }
};

// Error for training on one value per channel and for ghost batches.
ShardedBatchNorm sharded_batch_norm(const ShardPart& part, const Tensor& x, const BatchNormOptions& options);

// In training. args.mean and args.inverse_deviation are (statistics(), channels). The running statistics move
// towards those of the whole batch.
void normalize_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                      const BatchNormForward& args, StreamView stream);

// args.dweight and args.dbias are (own shards, channels). `x_grad` says whether dx is wanted: a part without
// rows has none, but must exchange its sums as the others do.
void gradients_of_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                         const BatchNormBackward& args, bool x_grad, StreamView stream);

}  // namespace tandem::detail
