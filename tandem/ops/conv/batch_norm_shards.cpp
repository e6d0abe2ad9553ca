#include "tandem/ops/conv/batch_norm_shards.h"

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/tensor/copy.h"

namespace tandem::detail {
namespace {

Tensor make_sums(const ShardedBatchNorm& sharded, const BatchNormPlan& plan, Device device) {
  Tensor sums = Tensor::empty({sharded.part->own.count(), 2, plan.channels}, DType::f64, device);
  clear_for_empty_shards(sharded, sums);
  return sums;
}

}  // namespace

ShardedBatchNorm sharded_batch_norm(const ShardPart& part, const Tensor& x, const BatchNormOptions& options) {
  check(options.ghost_batch_rows == 0, "[batch_norm] expected no ghost batches in a batch of {} shards",
        part.shards);
  const std::int64_t batch_size = batch_size_of(&part, x.size(0), "batch_norm");
  std::int64_t pixels = 1;
  for (int axis = 1; axis + 1 < x.rank(); ++axis) pixels *= x.size(axis);
  ShardedBatchNorm sharded{.part = &part,
                           .shards = {.shards = part.shards,
                                      .rows = part.rows,
                                      .row_values = part.rows > 0 ? batch_size / part.rows * pixels : pixels,
                                      .own = part.own,
                                      .per_shard = options.training && part.norm == ShardNorm::shard}};
  if (!options.training) return sharded;
  check(sharded.shards.values() > 1,
        "[batch_norm] expected more than one value per channel in training, got a batch of {} rows",
        part.rows);
  for (std::int64_t shard = 0; shard < part.shards && sharded.shards.per_shard; ++shard)
    check(sharded.shards.values(shard) != 1,
          "[batch_norm] expected more than one value per channel in every shard, got one in shard {} of {}",
          shard, part.shards);
  return sharded;
}

void clear_for_empty_shards(const ShardedBatchNorm& sharded, const Tensor& values) {
  if (sharded.part->rows < sharded.part->shards) clear(values);
}

void normalize_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                      const BatchNormForward& args, StreamView stream) {
  const BatchNormShards& shards = sharded.shards;
  const Tensor moments = make_sums(sharded, plan, stream.device);
  if (plan.rows > 0)
    on_backend(stream.device, "batch_norm", [&]<Backend B>() {
      batch_norm_moments_kernel<B>(plan, shards, moments.data<double>(), args.x, stream);
    });
  const Tensor all = gather_shards(*sharded.part, moments, "batch_norm");
  on_backend(stream.device, "batch_norm", [&]<Backend B>() {
    batch_norm_joined_kernel<B>(plan, shards, all.data<double>(), args, stream);
  });
}

void gradients_of_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                         const BatchNormBackward& args, bool x_grad, StreamView stream) {
  const BatchNormShards& shards = sharded.shards;
  const bool through_batch = plan.options.training && x_grad && !shards.per_shard;
  if (!through_batch) {
    if (plan.rows > 0)
      on_backend(stream.device, "batch_norm",
                 [&]<Backend B>() { batch_norm_shard_gradient_kernel<B>(plan, shards, args, stream); });
    return;
  }
  const Tensor sums = make_sums(sharded, plan, stream.device);
  if (plan.rows > 0)
    on_backend(stream.device, "batch_norm", [&]<Backend B>() {
      batch_norm_sums_kernel<B>(plan, shards, sums.data<double>(), args, stream);
    });
  const Tensor all = gather_shards(*sharded.part, sums, "batch_norm");
  if (plan.rows > 0)
    on_backend(stream.device, "batch_norm", [&]<Backend B>() {
      batch_norm_joined_gradient_kernel<B>(plan, shards, all.data<double>(), args, stream);
    });
}

}  // namespace tandem::detail
