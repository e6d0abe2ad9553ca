// Batch normalisation over the last axis, with PyTorch's names.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/batch_norm.h"
#include "tandem/ops/fold_norm.h"

namespace tandem {

// While it lives, batch norms on this thread take each `images` rows of what they are given, and what is
// left, for a batch by itself: so several batches can go through a network at once. There are no gradients
// then.
class SeparateBatches {
 public:
  explicit SeparateBatches(std::int64_t images);
  ~SeparateBatches();
  SeparateBatches(const SeparateBatches&) = delete;
  SeparateBatches& operator=(const SeparateBatches&) = delete;

 private:
  std::int64_t previous_;
};

// "weight" ones, "bias" zeros; buffers "running_mean" zeros, "running_var" ones, "num_batches_tracked" 0
// (i64).
class BatchNorm : public Module {
 public:
  explicit BatchNorm(std::int64_t channels, double momentum = 0.1, double epsilon = 1e-5);

  Tensor forward(const Tensor& x) override { return forward(x, {}, false); }
  // relu(normalised + residual); the residual may be an empty handle.
  Tensor forward(const Tensor& x, const Tensor& residual, bool relu);

  // Always as in evaluation: the running statistics do not move.
  void fix_statistics() { fixed_ = true; }
  bool uses_batch() const { return is_training() && !fixed_; }

  // Handles of this module's members: what it does in evaluation.
  NormValues values() const { return {weight_, bias_, running_mean_, running_variance_, epsilon_}; }

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

 private:
  Tensor weight_, bias_, running_mean_, running_variance_, batches_;
  double momentum_, epsilon_;
  bool fixed_ = false;
};

}  // namespace tandem
