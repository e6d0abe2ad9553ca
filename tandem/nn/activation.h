// An activation as a layer.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/ops/activation.h"

namespace tandem {

class ActivationLayer : public Module {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  Tensor forward(const Tensor& x) override;
  Activation activation() const { return activation_; }

 private:
  Activation activation_;
};

}  // namespace tandem
