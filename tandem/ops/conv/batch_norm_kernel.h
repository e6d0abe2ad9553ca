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
  const std::byte* dy_term;  // a second term of dy; CUDA only, with dresidual, may be null
  const std::byte* x;
  const std::byte* y;  // needed with a ReLU only
  const std::byte* weight;
  const std::byte* mean;
  const std::byte* inverse_deviation;
  // Set with an activation that needs its argument, which follows from x, and with a ReLU and no residual:
  // the sign of y then follows from x too.
  const std::byte* bias;
};

template <Backend B>
void batch_norm_gradient_kernel(const BatchNormPlan& plan, const BatchNormBackward& args, StreamView stream);

// The two kernels above in parts, for a part of a batch that is cut into shards (batch_norm_shards.h). Sums
// are two values per channel in f64, (shards, 2, channels); those of shards without rows are not written.

struct BatchNormShards {
  std::int64_t shards = 1;      // of the batch
  std::int64_t rows = 0;        // of the batch
  std::int64_t row_values = 1;  // per channel
  IndexRange own = {0, 1};      // the shards that the plan's rows are
  bool per_shard = false;       // each shard is normalized by its own statistics

  constexpr std::int64_t values() const { return rows * row_values; }
  constexpr std::int64_t values(std::int64_t shard) const {
    return rows_of_shards(rows, shards, {shard, shard + 1}).count() * row_values;
  }
  // Where the plan's rows of own shard `index` begin, and where those of the one before end.
  constexpr std::int64_t begin_of(std::int64_t index) const {
    return rows_of_shards(rows, shards, {own.begin, own.begin + index}).count() * row_values;
  }
  constexpr std::int64_t values_of_own(std::int64_t index) const {
    return begin_of(index + 1) - begin_of(index);
  }
  // The own shards that have statistics of their own.
  constexpr std::int64_t statistics() const { return per_shard ? own.count() : 1; }
};

// The mean and Σ (x − mean)² of each own shard. The plan has rows.
template <Backend B>
void batch_norm_moments_kernel(const BatchNormPlan& plan, const BatchNormShards& shards, double* moments,
                               const std::byte* x, StreamView stream);
// Joins the moments of all shards in the order of the shards and normalizes by them, or each shard by its
// own. The running statistics move towards those of all shards. args.mean and args.inverse_deviation are
// (statistics(), channels). The plan may have no rows.
template <Backend B>
void batch_norm_joined_kernel(const BatchNormPlan& plan, const BatchNormShards& shards, const double* moments,
                              const BatchNormForward& args, StreamView stream);

// Σ g and Σ g · x̂ of each own shard, where g is dy after the gradient of the activation. Also writes dweight
// and dbias, (own shards, channels). The plan has rows.
template <Backend B>
void batch_norm_sums_kernel(const BatchNormPlan& plan, const BatchNormShards& shards, double* sums,
                            const BatchNormBackward& args, StreamView stream);
// dx and dresidual by the sums of all shards, after batch_norm_sums_kernel().
template <Backend B>
void batch_norm_joined_gradient_kernel(const BatchNormPlan& plan, const BatchNormShards& shards,
                                       const double* sums, const BatchNormBackward& args, StreamView stream);
// All gradients, where no sums of other shards are needed. The plan has rows.
template <Backend B>
void batch_norm_shard_gradient_kernel(const BatchNormPlan& plan, const BatchNormShards& shards,
                                      const BatchNormBackward& args, StreamView stream);

}  // namespace tandem::detail
