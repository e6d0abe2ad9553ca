// Fully connected layer: y = x · weightᵀ + bias.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"
#include "tandem/ops/random.h"

namespace tandem {

struct LinearOptions {
  bool bias = true;
  RandomOptions random = {};  ///< initial weight: seed, stream, dtype and device
};

/// "weight" (out, in) starts Xavier-uniform, "bias" (out) at zero. Throws Error for sizes below 1.
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});

  Linear(Linear&& other) noexcept;
  /// Replaces weight and bias; optimizers that hold the old ones throw Error at their next step.
  Linear& operator=(Linear&& other) noexcept;

  /// (n, in) → (n, out)
  Tensor forward(const Tensor& x) override;

  const Tensor& weight() const { return weight_; }
  /// Undefined without a bias.
  const Tensor& bias() const { return bias_; }

 private:
  Tensor weight_, bias_;
};

}  // namespace tandem
