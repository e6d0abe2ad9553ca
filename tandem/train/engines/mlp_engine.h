// Engines for perceptrons: cpu_mlp.h on the CPU, resident_mlp.h and layered_mlp.h on a GPU.
#pragma once

#include <memory>
#include <optional>

#include "tandem/train/engines/cpu_mlp.h"
#include "tandem/train/engines/engine.h"

namespace tandem {

// The shape of a model that consists of linear layers with biases in f32 and the same activation between them
// (and, for mse, a sigmoid at the end); nullopt for any other model.
std::optional<MlpShape> find_mlp_shape(Module& model, LossKind loss);

// nullptr if the engine is not applicable to the task.
template <Backend B>
std::unique_ptr<Engine> make_mlp_engine(const TrainingTask& task);

// Pointers to the weights, biases and optimizer states of each layer.
struct LayerState {
  ParameterState weight, bias;
};
std::vector<LayerState> layer_states(const TrainingTask& task);

// Copies the hyperparameters of several steps to a device.
Tensor to_device(const std::vector<detail::StepHyperparameters<float>>& hyperparameters, Device device);

}  // namespace tandem
