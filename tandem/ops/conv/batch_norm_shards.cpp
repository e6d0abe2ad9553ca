#include "tandem/ops/conv/batch_norm_shards.h"

#include "tandem/core/check.h"
#include "tandem/tensor/copy.h"

namespace tandem::detail {
namespace {

// shard_part() refuses other devices: these kernels exist for the CPU only.
constexpr Backend B = Backend::cpu;

// Addresses inside the tensors of a plan.
struct Offsets {
  std::int64_t row_bytes;        // of x, y and their gradients
  std::int64_t parameter_bytes;  // of one value per channel

  explicit Offsets(const BatchNormPlan& plan)
      : row_bytes(plan.channels * static_cast<std::int64_t>(size_of(plan.dtype))),
        parameter_bytes(plan.channels * static_cast<std::int64_t>(
                                            size_of(plan.dtype == DType::bf16 ? DType::f32 : plan.dtype))) {}
};

template <class Byte>
void move(Byte*& pointer, std::int64_t bytes) {
  if (pointer) pointer += bytes;
}

BatchNormPlan plan_of(const BatchNormPlan& plan, IndexRange rows) {
  BatchNormPlan shard = plan;
  shard.rows = rows.count();
  return shard;
}

// The arguments of own shard `index`.
BatchNormForward arguments_of(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                              BatchNormForward args, std::int64_t index) {
  const Offsets offsets(plan);
  const std::int64_t first = sharded.ranges[static_cast<std::size_t>(index)].begin * offsets.row_bytes;
  move(args.x, first);
  move(args.y, first);
  move(args.residual, first);
  move(args.mean, index * offsets.parameter_bytes);
  move(args.inverse_deviation, index * offsets.parameter_bytes);
  args.running_mean = args.running_variance = nullptr;
  args.batches_tracked = nullptr;
  return args;
}

BatchNormBackward arguments_of(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                               BatchNormBackward args, std::int64_t index) {
  const Offsets offsets(plan);
  const std::int64_t first = sharded.ranges[static_cast<std::size_t>(index)].begin * offsets.row_bytes;
  move(args.dx, first);
  move(args.dresidual, first);
  move(args.dy, first);
  move(args.x, first);
  move(args.y, first);
  move(args.dweight, index * offsets.parameter_bytes);
  move(args.dbias, index * offsets.parameter_bytes);
  if (sharded.per_shard) {
    move(args.mean, index * offsets.parameter_bytes);
    move(args.inverse_deviation, index * offsets.parameter_bytes);
  }
  return args;
}

Tensor make_sums(const ShardedBatchNorm& sharded, const BatchNormPlan& plan, Device device) {
  Tensor sums = Tensor::empty({sharded.part->own.count(), 2, plan.channels}, DType::f64, device);
  clear(sums);  // for shards without rows
  return sums;
}

template <class F>
void for_each_shard(const ShardedBatchNorm& sharded, const F& f) {
  for (std::size_t i = 0; i < sharded.ranges.size(); ++i)
    if (sharded.ranges[i].count() > 0) f(static_cast<std::int64_t>(i), sharded.ranges[i]);
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
                                      .row_values = part.rows > 0 ? batch_size / part.rows * pixels : pixels},
                           .ranges = shard_ranges(part, x.size(0), "batch_norm"),
                           .per_shard = options.training && part.norm == ShardNorm::shard};
  for (IndexRange& range : sharded.ranges) range = {range.begin * pixels, range.end * pixels};
  if (!options.training) return sharded;
  check(sharded.shards.values() > 1,
        "[batch_norm] expected more than one value per channel in training, got a batch of {} rows",
        part.rows);
  for (std::int64_t shard = 0; shard < part.shards && sharded.per_shard; ++shard)
    check(sharded.shards.values(shard) != 1,
          "[batch_norm] expected more than one value per channel in every shard, got one in shard {} of {}",
          shard, part.shards);
  return sharded;
}

void normalize_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                      const BatchNormForward& args, StreamView stream) {
  const Tensor moments = make_sums(sharded, plan, stream.device);
  for_each_shard(sharded, [&](std::int64_t i, IndexRange rows) {
    batch_norm_moments_kernel<B>(plan_of(plan, rows), moments[i].data<double>(),
                                 arguments_of(sharded, plan, args, i).x, stream);
  });
  const Tensor all = gather_shards(*sharded.part, moments, "batch_norm");
  BatchNormForward joined = args;
  if (sharded.per_shard) joined.mean = joined.inverse_deviation = nullptr;
  batch_norm_join_kernel<B>(plan, sharded.shards, all.data<double>(), joined, stream);
  if (!sharded.per_shard) {
    if (plan.rows > 0) batch_norm_apply_kernel<B>(plan, args, stream);
    return;
  }
  for_each_shard(sharded, [&](std::int64_t i, IndexRange rows) {
    const BatchNormPlan shard = plan_of(plan, rows);
    const BatchNormForward shard_args = arguments_of(sharded, plan, args, i);
    batch_norm_join_kernel<B>(shard, {.rows = rows.count()}, moments[i].data<double>(), shard_args, stream);
    batch_norm_apply_kernel<B>(shard, shard_args, stream);
  });
}

void gradients_of_shards(const ShardedBatchNorm& sharded, const BatchNormPlan& plan,
                         const BatchNormBackward& args, bool x_grad, StreamView stream) {
  const bool through_batch = plan.options.training && x_grad && !sharded.per_shard;
  if (!through_batch)
    return for_each_shard(sharded, [&](std::int64_t i, IndexRange rows) {
      batch_norm_gradient_kernel<B>(plan_of(plan, rows), arguments_of(sharded, plan, args, i), stream);
    });
  const Tensor sums = make_sums(sharded, plan, stream.device);
  for_each_shard(sharded, [&](std::int64_t i, IndexRange rows) {
    batch_norm_sums_kernel<B>(plan_of(plan, rows), sums[i].data<double>(),
                              arguments_of(sharded, plan, args, i), stream);
  });
  const Tensor all = gather_shards(*sharded.part, sums, "batch_norm");
  if (plan.rows > 0)
    batch_norm_input_gradient_kernel<B>(plan, sharded.shards, all.data<double>(), args, stream);
}

}  // namespace tandem::detail
