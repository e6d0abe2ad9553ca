// Stochastic depth (Huang et al. 2016): in training, the branch of a residual block is dropped for some
// images.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {

/// Each image of the batch is dropped as a whole ("row" mode of torchvision). Which ones is a function of
/// (seed, layer, step, image). The step is the buffer "step", so that a resumed run continues with the same
/// images. Active only in training and where the branch gets gradients: a frozen branch is never dropped.
class StochasticDepth : public Module {
 public:
  /// Layers of one network need different `layer` numbers. Throws Error unless 0 ≤ probability < 1.
  StochasticDepth(double probability, std::uint64_t seed, std::uint32_t layer);

  /// The branch x (n, …) without a shortcut.
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  /// x, dropped with the probability and else divided by 1 − probability, plus the residual.
  Tensor forward(const Tensor& x, const Tensor& residual);
  double probability() const { return probability_; }

  /// Whether forward(x, …) drops images now.
  bool drops(const Tensor& x) const;

 private:
  double probability_;
  std::uint64_t seed_;
  std::uint32_t layer_;
  Tensor step_;
};

}  // namespace tandem
