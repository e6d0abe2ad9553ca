// Restores a model that was trained for measuring.
#pragma once

#include "tandem/nn/module.h"
#include "tandem/train/evaluator.h"

namespace tandem {

// Values, mode and device of a model, bit for bit.
class ModelSnapshot {
 public:
  explicit ModelSnapshot(Module& model)
      : model_(model), device_(device_of(model)), is_training_(model.is_training()) {
    for (const NamedTensor& each : model.state_dict())
      values_.push_back({each.name, each.tensor.clone().to(cpu_device)});
  }
  // Also drops gradients.
  void restore() {
    model_.zero_grad();
    model_.to(device_);
    model_.load_state_dict(values_);
    model_.train(is_training_);
  }

 private:
  Module& model_;
  Device device_;
  bool is_training_;
  NamedTensors values_;
};

}  // namespace tandem
