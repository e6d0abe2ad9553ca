// A network made of a backbone, which finds features in images, and a last layer, which tells classes by
// them. Often the backbone comes from elsewhere and only the last layer is trained.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {

class BackboneModel : public Module {
 public:
  Tensor forward(const Tensor& x) final { return head(features(x)); }

  // (n, height, width, channels) → (n, features) in f32.
  virtual Tensor features(const Tensor& x) = 0;
  virtual Tensor head(const Tensor& features) = 0;
  virtual std::int64_t feature_count() const = 0;

  // Everything but the last layer. Batch norms go on moving their running statistics in training, unless
  // these are fixed.
  void freeze_backbone() {
    freeze_features();
    frozen_ = true;
  }
  bool is_backbone_frozen() const { return frozen_; }
  virtual void fix_statistics() = 0;

 protected:
  virtual void freeze_features() = 0;

 private:
  bool frozen_ = false;
};

}  // namespace tandem
