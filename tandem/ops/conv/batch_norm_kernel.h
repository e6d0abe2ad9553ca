// The batch normalization kernels behind batch_norm.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/shard_tree.h"
#include "tandem/device/stream.h"
#include "tandem/ops/conv/batch_norm.h"

namespace tandem::detail {

struct BatchNormPlan {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  DType dtype = DType::f32;  // of x, y, residual and their gradients
  BatchNormOptions options = {};

  // Rows per (ghost) batch, in training.
  constexpr std::int64_t batch_rows() const {
    return options.ghost_batch_rows > 0 ? options.ghost_batch_rows : rows;
  }
  constexpr std::int64_t batches() const {
    return options.training ? (rows + batch_rows() - 1) / batch_rows() : 1;
  }
};

// mean and inverse_deviation receive the values used to normalize, (batches, channels): the gradient needs
// them.
struct BatchNormForward {
  std::byte* y;
  const std::byte* x;
  const std::byte* residual;  // may be null
  const std::byte* weight;
  const std::byte* bias;
  std::byte* running_mean;  // updated in training
  std::byte* running_variance;
  std::byte* mean;
  std::byte* inverse_deviation;
  std::int64_t* batches_tracked;  // may be null
};

template <Backend B>
void batch_norm_kernel(const BatchNormPlan& plan, const BatchNormForward& args, StreamView stream);

struct BatchNormBackward {
  // Each output may be null.
  std::byte* dx;
  std::byte* dresidual;
  std::byte* dweight;
  std::byte* dbias;
  // Inputs that no requested output needs may be null.
  const std::byte* dy;
  const std::byte* x;
  const std::byte* y;  // needed with a ReLU only
  const std::byte* weight;
  const std::byte* mean;
  const std::byte* inverse_deviation;
  const std::byte* bias;  // set with a ReLU and no residual: the sign of y then follows from x
};

template <Backend B>
void batch_norm_gradient_kernel(const BatchNormPlan& plan, const BatchNormBackward& args, StreamView stream);

// The two kernels above in parts, for a batch whose rows are summed by shard (batch_norm_shards.h). Sums are
// two values per channel in f64, (2, channels).

// Shards that are joined: `rows` rows of the batch, each with `row_values` values per channel.
struct BatchNormShards {
  std::int64_t shards = 1;
  std::int64_t rows = 0;
  std::int64_t row_values = 1;

  constexpr std::int64_t values() const { return rows * row_values; }
  constexpr std::int64_t values(std::int64_t shard) const {
    return rows_of_shards(rows, shards, {shard, shard + 1}).count() * row_values;
  }
};

// The mean and Σ (x − mean)² of plan.rows rows, which are not 0.
template <Backend B>
void batch_norm_moments_kernel(const BatchNormPlan& plan, double* moments, const std::byte* x,
                               StreamView stream);
// Joins the moments of the shards, (shards, 2, channels), in the order of the shards. Writes args.mean and
// args.inverse_deviation unless they are null, and updates the running statistics unless they are.
template <Backend B>
void batch_norm_join_kernel(const BatchNormPlan& plan, const BatchNormShards& shards, const double* moments,
                            const BatchNormForward& args, StreamView stream);
// Normalizes by args.mean and args.inverse_deviation.
template <Backend B>
void batch_norm_apply_kernel(const BatchNormPlan& plan, const BatchNormForward& args, StreamView stream);

// Σ g and Σ g · x̂, where g is dy after the gradient of the ReLU. Also writes dweight and dbias.
template <Backend B>
void batch_norm_sums_kernel(const BatchNormPlan& plan, double* sums, const BatchNormBackward& args,
                            StreamView stream);
// dx and dresidual, by the sums of all shards, (shards, 2, channels).
template <Backend B>
void batch_norm_input_gradient_kernel(const BatchNormPlan& plan, const BatchNormShards& shards,
                                      const double* sums, const BatchNormBackward& args, StreamView stream);

}  // namespace tandem::detail
