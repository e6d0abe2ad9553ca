// A perceptron of any size on the GPU, layer by layer: matrix products by cuBLAS, everything between them
// fused. The step is captured once and replayed; sample indices and hyperparameters are read from device
// memory, so that no step waits for the host. Plain SGD only: the update is part of the product that computes
// the gradient, W ← (1 − rate · decay) · W − rate · Gᵀ · A, and the gradient itself is never stored.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/train/engines/mlp_engine.h"

namespace tandem {

// CUDA builds only. nullptr unless the optimizer is SGD without momentum.
std::unique_ptr<Engine> make_layered_engine(const TrainingTask& task, const MlpTask& mlp);

}  // namespace tandem
