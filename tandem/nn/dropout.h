// Inverted dropout: in training each element is 0 with a given probability and otherwise divided by what is
// left; in evaluation nothing happens.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {

// Draws are a function of (seed, layer, step, element). The step, which forward() counts in training, is the
// buffer "step", so that a resumed run goes on with the same masks.
class Dropout : public Module {
 public:
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
