// Batch normalization of shards on the CPU: one shard after the other.
#include "tandem/ops/conv/batch_norm_cpu.h"

namespace tandem::detail {
namespace {

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

BatchNormPlan plan_of(const BatchNormShards& shards, BatchNormPlan plan, std::int64_t index) {
  plan.rows = shards.values_of_own(index);
  return plan;
}

// The arguments of own shard `index`.
BatchNormForward arguments_of(const BatchNormShards& shards, const BatchNormPlan& plan, BatchNormForward args,
                              std::int64_t index) {
  const Offsets offsets(plan);
  const std::int64_t first = shards.begin_of(index) * offsets.row_bytes;
  move(args.x, first);
  move(args.y, first);
  move(args.residual, first);
  move(args.mean, index * offsets.parameter_bytes);
  move(args.inverse_deviation, index * offsets.parameter_bytes);
  args.running_mean = args.running_variance = nullptr;
  args.batches_tracked = nullptr;
  return args;
}

BatchNormBackward arguments_of(const BatchNormShards& shards, const BatchNormPlan& plan,
                               BatchNormBackward args, std::int64_t index) {
  const Offsets offsets(plan);
  const std::int64_t first = shards.begin_of(index) * offsets.row_bytes;
  move(args.dx, first);
  move(args.dresidual, first);
  move(args.dy, first);
  move(args.x, first);
  move(args.y, first);
  move(args.dweight, index * offsets.parameter_bytes);
  move(args.dbias, index * offsets.parameter_bytes);
  if (shards.per_shard) {
    move(args.mean, index * offsets.parameter_bytes);
    move(args.inverse_deviation, index * offsets.parameter_bytes);
  }
  return args;
}

// Calls f(plan of the shard, index) for the own shards that have rows.
template <class F>
void for_each_shard(const BatchNormPlan& plan, const BatchNormShards& shards, const F& f) {
  for (std::int64_t i = 0; i < shards.own.count(); ++i)
    if (shards.values_of_own(i) > 0) f(plan_of(shards, plan, i), i);
}

}  // namespace

template <>
void batch_norm_moments_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                             double* moments, const std::byte* x, StreamView) {
  const std::int64_t row_bytes = Offsets(plan).row_bytes;
  for_each_shard(plan, shards, [&](const BatchNormPlan& shard, std::int64_t i) {
    batch_norm_cpu::write_moments(shard, moments + 2 * i * plan.channels, x + shards.begin_of(i) * row_bytes);
  });
}

template <>
void batch_norm_joined_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                            const double* moments, const BatchNormForward& args, StreamView) {
  BatchNormForward joined = args;
  if (shards.per_shard) joined.mean = joined.inverse_deviation = nullptr;
  batch_norm_cpu::join_moments(plan, shards, moments, joined);
  if (!shards.per_shard) {
    if (plan.rows > 0) batch_norm_cpu::apply_moments(plan, args);
    return;
  }
  for_each_shard(plan, shards, [&](const BatchNormPlan& shard, std::int64_t i) {
    const BatchNormForward shard_args = arguments_of(shards, plan, args, i);
    batch_norm_cpu::join_moments(shard, {.rows = shard.rows},
                                 moments + 2 * (shards.own.begin + i) * plan.channels, shard_args);
    batch_norm_cpu::apply_moments(shard, shard_args);
  });
}

template <>
void batch_norm_sums_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                          double* sums, const BatchNormBackward& args, StreamView) {
  for_each_shard(plan, shards, [&](const BatchNormPlan& shard, std::int64_t i) {
    batch_norm_cpu::write_sums(shard, sums + 2 * i * plan.channels, arguments_of(shards, plan, args, i));
  });
}

template <>
void batch_norm_joined_gradient_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                                     const double* sums, const BatchNormBackward& args,
                                                     StreamView) {
  if (plan.rows > 0) batch_norm_cpu::write_input_gradient(plan, shards, sums, args);
}

template <>
void batch_norm_shard_gradient_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                                    const BatchNormBackward& args, StreamView stream) {
  for_each_shard(plan, shards, [&](const BatchNormPlan& shard, std::int64_t i) {
    batch_norm_gradient_kernel<Backend::cpu>(shard, arguments_of(shards, plan, args, i), stream);
  });
}

}  // namespace tandem::detail
