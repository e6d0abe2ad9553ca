// Multi-layer perceptrons: linear layers with activations between them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/sequential.h"
#include "tandem/ops/activation.h"

namespace tandem {

struct MlpOptions {
  std::vector<std::int64_t> layers;  ///< sizes from input to output: {784, 200, 10}
  Activation activation = Activation::sigmoid;
  double dropout = 0;           ///< probability of a Dropout after each activation; 0 adds none
  bool sigmoid_output = false;  ///< adds a sigmoid after the last layer, for LossKind::mse
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
};

/// Sequential(Linear, ActivationLayer[, Dropout], …, Linear[, sigmoid]) on the CPU. Weights start
/// Xavier-uniform, layer i from stream i of the seed; biases start at zero. Throws Error for fewer than two
/// sizes, a size below 1 or more than 2⁴⁰ weights.
std::unique_ptr<Sequential> make_mlp(const MlpOptions& options);

}  // namespace tandem
