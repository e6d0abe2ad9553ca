// The multi-layer perceptron: linear layers with an activation between them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/sequential.h"
#include "tandem/ops/activation.h"

namespace tandem {

struct MlpOptions {
  std::vector<std::int64_t> layers;  // sizes from the input to the classes: {784, 200, 10}
  Activation activation = Activation::sigmoid;
  double dropout = 0;           // after each activation, when it is not 0
  bool sigmoid_output = false;  // for a squared error
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
};

// Sequential(Linear, ActivationLayer[, Dropout], …, Linear[, sigmoid]) on the CPU. Weights are
// Xavier-uniform, layer i from stream i of the seed; biases are zero. Fewer than two sizes, a size below 1 or
// more weights than 2⁴⁰ are an Error.
std::unique_ptr<Sequential> make_mlp(const MlpOptions& options);

}  // namespace tandem
