// Activation functions as modules.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/activation.h"

namespace tandem {

/// Applies an activation element by element.
class ActivationLayer : public StatelessModule {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  Tensor forward(const Tensor& x) override;
  Activation activation() const { return activation_; }

 private:
  Activation activation_;
};

/// relu() as a module.
class ReLU : public ActivationLayer {
 public:
  ReLU() : ActivationLayer(Activation::relu) {}
};

/// sigmoid() as a module.
class Sigmoid : public ActivationLayer {
 public:
  Sigmoid() : ActivationLayer(Activation::sigmoid) {}
};

/// tanh() as a module.
class Tanh : public ActivationLayer {
 public:
  Tanh() : ActivationLayer(Activation::tanh) {}
};

}  // namespace tandem
