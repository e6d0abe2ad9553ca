// Batch normalization of a part of a batch that is cut into shards (ops/shard_scope.h). The sums of each
// shard are computed alone, in f64, and joined in the order of the shards, so the bits do not depend on who
// has which shard.
#pragma once

#include "tandem/ops/conv/batch_norm_kernel.h"
#include "tandem/ops/shard_scope.h"

namespace tandem::detail {

struct ShardedBatchNorm {
  const ShardPart* part;
  BatchNormShards shards;
};

// Error for training on one value per channel and for ghost batches.
ShardedBatchNorm sharded_batch_norm(const ShardPart& part, const Tensor& x, const BatchNormOptions& options);

// In training. args.mean and args.inverse_deviation are (shards.statistics(), channels). The running
// statistics move towards those of the whole batch.
void normalize_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                      const BatchNormForward& args, StreamView stream);

// Clears values of the own shards if some shard has no rows: kernels do not write those of such a shard.
void clear_for_empty_shards(const ShardedBatchNorm& sharded, const Tensor& values);

// args.dweight and args.dbias are (own shards, channels). `x_grad` says whether dx is wanted: a part without
// rows has none, but must exchange its sums as the others do.
void gradients_of_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                         const BatchNormBackward& args, bool x_grad, StreamView stream);

}  // namespace tandem::detail
