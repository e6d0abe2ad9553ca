// Engines for perceptrons: cpu_mlp.h on the CPU, resident_mlp.h and layered_mlp.h on a GPU.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/engines/cpu_mlp.h"
#include "tandem/train/engines/engine.h"

namespace tandem {

// Pointers to the weights, biases and optimizer states of one layer.
struct LayerState {
  ParameterState weight, bias;
};

// A task whose model is a perceptron.
struct MlpTask {
  MlpShape shape;
  std::vector<LayerState> layers;  // memory of the model and the optimizer
  FusedOptimizer* optimizer = nullptr;
  float pixel_scale = 1;  // pixel p is the input p · pixel_scale
};

// The perceptron of a task: a model that trace_mlp() recognizes, whose parameters a fused optimizer updates
// and whose input is scaled pixels without mixup or cutmix; nullopt for any other task.
std::optional<MlpTask> find_mlp(const TrainingTask& task);

// nullptr if the engine is not applicable to the task.
template <Backend B>
std::unique_ptr<Engine> make_mlp_engine(const TrainingTask& task);

// Copies the hyperparameters of several steps to a device.
Tensor to_device(const std::vector<detail::StepHyperparameters<float>>& hyperparameters, Device device);

}  // namespace tandem
