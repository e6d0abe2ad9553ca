// Image classifiers made of a backbone, which computes features, and a head, which classifies them. In
// transfer learning the backbone is pretrained and only the head is trained.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {

/// Base class of classifiers whose backbone can be frozen.
class BackboneModel : public Module {
 public:
  Tensor forward(const Tensor& x) final { return head(features(x)); }

  /// (n, height, width, channels) → (n, feature_count()) in f32.
  virtual Tensor features(const Tensor& x) = 0;
  /// (n, feature_count()) → logits (n, classes) in f32.
  virtual Tensor head(const Tensor& features) = 0;
  virtual std::int64_t feature_count() const = 0;

  /// Freezes all parameters but those of the head. Batch norms still update their running statistics in
  /// training unless freeze_statistics() is called too.
  void freeze_backbone() {
    freeze_features();
    frozen_ = true;
  }
  bool is_backbone_frozen() const { return frozen_; }
  /// Makes all batch norms use their running statistics, also in training.
  virtual void freeze_statistics() = 0;

 protected:
  virtual void freeze_features() = 0;

 private:
  bool frozen_ = false;
};

}  // namespace tandem
