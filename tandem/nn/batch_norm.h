// Batch normalization over the last axis, with PyTorch's state-dict names.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"
#include "tandem/ops/conv/batch_norm.h"

namespace tandem {

/// While an instance exists, batch norms on this thread normalize every `batch_size` images (and the
/// remainder) as a batch of their own, so that several batches can pass through a network in one call.
/// Forward only: there are no gradients.
class GhostBatches {
 public:
  explicit GhostBatches(std::int64_t batch_size);
  ~GhostBatches();
  GhostBatches(const GhostBatches&) = delete;
  GhostBatches& operator=(const GhostBatches&) = delete;

 private:
  std::int64_t previous_;
};

/// While an instance exists, batch norms on this thread update their running statistics with this momentum
/// instead of their own. With momentum 1/k for batch k = 1, 2, … in training mode, the statistics become the
/// mean over the batches, whatever they were (PyTorch's momentum=None).
class BatchNormMomentum {
 public:
  /// Throws Error unless `momentum` is above 0 and at most 1.
  explicit BatchNormMomentum(double momentum);
  ~BatchNormMomentum();
  BatchNormMomentum(const BatchNormMomentum&) = delete;
  BatchNormMomentum& operator=(const BatchNormMomentum&) = delete;

 private:
  double previous_;
};

/// Parameters "weight" (ones) and "bias" (zeros); buffers "running_mean" (zeros), "running_var" (ones) and
/// "num_batches_tracked" (i64, 0).
class BatchNorm : public Module {
 public:
  explicit BatchNorm(std::int64_t channels, double momentum = 0.1, double epsilon = 1e-5);

  BatchNorm(BatchNorm&& other) noexcept;

  Tensor forward(const Tensor& x) override { return forward(x, {}, FusedActivation::none); }
  /// normalized + residual, then the activation. The residual may be an undefined tensor.
  Tensor forward(const Tensor& x, const Tensor& residual, FusedActivation activation);

  /// Normalizes with the running statistics and no longer updates them, also in training.
  void freeze_statistics() { frozen_ = true; }
  /// Whether forward() normalizes with the statistics of the batch.
  bool uses_batch_statistics() const { return is_training() && !frozen_; }

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  const Tensor& running_mean() const { return statistics_.mean; }
  const Tensor& running_variance() const { return statistics_.variance; }
  double epsilon() const { return epsilon_; }

 private:
  Tensor weight_, bias_;
  BatchNormStatistics statistics_;
  double momentum_, epsilon_;
  bool frozen_ = false;
};

}  // namespace tandem
