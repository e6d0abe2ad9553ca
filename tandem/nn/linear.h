// A linear layer: y = x · weightᵀ + bias.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"
#include "tandem/ops/random.h"

namespace tandem {

struct LinearOptions {
  bool bias = true;
  RandomOptions random = {};  // of the weight: seed, stream, dtype and device
};

// "weight" (out, in) Xavier-uniform, "bias" (out) zero.
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});

  Tensor forward(const Tensor& x) override;  // (n, in) → (n, out)

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined when there is none

 private:
  Tensor weight_, bias_;
};

}  // namespace tandem
