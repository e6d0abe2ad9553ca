// Engines for plain perceptrons: on the CPU cpu_mlp.h, on a GPU resident_mlp.h.
#pragma once

#include <memory>
#include <optional>

#include "tandem/train/cpu_mlp.h"
#include "tandem/train/engine.h"

namespace tandem {

// The shape of a model that is nothing but linear layers with one activation between them (and, with mse, a
// sigmoid at the end), all with biases, in f32; nothing for any other.
std::optional<MlpShape> perceptron_shape(Module& model, LossKind loss);

// nullptr where the task is not one for it.
template <Backend B>
std::unique_ptr<Engine> make_mlp_engine(const TrainingTask& task);

// The weights and biases of a perceptron, and what the optimiser keeps for them, where they lie.
struct LayerValues {
  TrainedValues weight, bias;
};
std::vector<LayerValues> layer_values(const TrainingTask& task);

// The numbers of steps on a device, one after the other.
Tensor to_device(const std::vector<UpdateNumbers<float>>& numbers, Device device);

}  // namespace tandem
