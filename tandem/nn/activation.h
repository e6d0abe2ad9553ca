// Activation functions as modules.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/activation.h"

namespace tandem {

/// Applies a sigmoid, tanh or ReLU element by element.
class ActivationLayer : public Module {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  Tensor forward(const Tensor& x) override;
  Activation activation() const { return activation_; }

 private:
  Activation activation_;
};

}  // namespace tandem
