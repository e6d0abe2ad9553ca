// Inverted dropout: in training each element is zeroed with probability p and otherwise divided by 1 − p; in
// evaluation it is the identity.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {

/// The mask is a function of (seed, layer, step, element). forward() counts the step in training; it is the
/// buffer "step", so that a resumed run continues with the same masks.
class Dropout : public Module {
 public:
  /// Throws Error unless 0 ≤ probability < 1. Layers of one network need different `layer` numbers.
  explicit Dropout(double probability, std::uint64_t seed = 1, std::uint32_t layer = 0);

  Tensor forward(const Tensor& x) override;
  double probability() const { return probability_; }

 private:
  double probability_;
  std::uint64_t seed_;
  std::uint32_t layer_;
  Tensor step_;
};

}  // namespace tandem
