// Inverted dropout: in training each element is zeroed with probability p and otherwise divided by 1 − p; in
// evaluation it is the identity.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"

namespace tandem {
namespace detail {
struct RandomStream;
}

/// The mask is a function of (seed, layer, step, element). forward() counts the step in training; it is the
/// buffer "step", so that a resumed run continues with the same masks.
class Dropout : public Module {
 public:
  /// Takes the next default stream of random numbers (ops/random.h), so that no two layers share a mask.
  /// Throws Error unless 0 ≤ probability < 1.
  explicit Dropout(double probability = 0.5);
  /// The same with given random numbers. Layers of one network need different `layer` numbers.
  Dropout(double probability, std::uint64_t seed, std::uint32_t layer = 0);
  Dropout(Dropout&& other) noexcept;

  Tensor forward(const Tensor& x) override;
  double probability() const { return probability_; }

 private:
  Dropout(double probability, const detail::RandomStream& key);

  double probability_;
  std::uint64_t seed_;
  std::uint32_t layer_;
  Tensor step_;
};

}  // namespace tandem
