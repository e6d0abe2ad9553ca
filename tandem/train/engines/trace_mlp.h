// Recognizes a perceptron by what its forward() computes, not by its class: a user's own Module of linear
// layers and activations trains as fast as the built-in one.
#pragma once

#include <optional>
#include <vector>

#include "tandem/nn/module.h"
#include "tandem/tensor/tensor.h"
#include "tandem/train/engines/mlp_shape.h"

namespace tandem {

// A perceptron and its parameters, which share the module's memory, from the input to the output.
struct TracedMlp {
  struct Layer {
    Tensor weight;  // (out, in)
    Tensor bias;    // (out)
  };
  MlpShape shape;
  std::vector<Layer> layers;
};

// Runs the model on two small batches of samples of the given shape (the sizes of one sample, without the
// batch axis) and reads the tape. Accepts linear layers with biases in f32 and one and the same activation
// between them (and, for mse, a sigmoid at the end), after an optional reshape of the input. Every parameter
// must be trained and used exactly once, there must be no buffers, and the output computed from the
// parameters must equal the model's. nullopt for any other model, also one that does not accept the batches.
std::optional<TracedMlp> trace_mlp(Module& model, const Dims& sample, LossKind loss);

}  // namespace tandem
