// The batch normalization kernels behind batch_norm.h.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace tandem::detail
