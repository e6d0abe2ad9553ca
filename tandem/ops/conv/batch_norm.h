// Batch normalization over the last axis, fused with the residual sum and the activation that follow it:
// y = activation((x − mean) / sqrt(variance + ε) · weight + bias + residual).
#pragma once

#include <cstdint>

#include "tandem/ops/fused_activation.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of batch_norm().
struct BatchNormOptions {
  /// True: normalize by the batch's mean and variance and update the running statistics.
  /// False: normalize by the running statistics.
  bool training = true;
  double momentum = 0.1;
  double epsilon = 1e-5;
  /// Only none and relu with a residual.
  FusedActivation activation = FusedActivation::none;
  /// Rows (values per channel) per ghost batch; the last ghost batch may be smaller. 0: one batch.
  std::int64_t ghost_batch_rows = 0;
};

/// The state that training updates in place. mean and variance are contiguous, (channels), in the dtype of
/// the weight.
struct BatchNormStatistics {
  Tensor mean;
  Tensor variance;
  /// The number of training batches so far, i64 of one element. May be an empty handle.
  Tensor batches_tracked = {};
};

/// Normalizes x (…, channels), at least two axes, per channel. weight and bias are (channels) in x's dtype,
/// or f32 for x in bf16; residual has x's shape and dtype or is an empty handle.
///
/// As in PyTorch, the batch is normalized by its biased variance, and the running variance moves towards the
/// unbiased one. Ghost batches give what separate calls in order would give, but have no gradients.
/// Throws Error for shapes, dtypes or devices that do not match, and for training on one value per channel.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  BatchNormStatistics& running_statistics, const BatchNormOptions& options = {},
                  const Tensor& residual = {});

}  // namespace tandem
