// The shape of a perceptron, as its engines need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/nn/loss.h"

namespace tandem {

// The activations that the engines have: their derivative is a function of the activated value. A closed list
// of its own, so that an activation added elsewhere is declined here and needs no edit.
enum class MlpActivation { sigmoid, tanh, relu };

struct MlpShape {
  std::vector<std::int64_t> sizes;  // from the inputs to the classes
  MlpActivation activation = MlpActivation::sigmoid;
  LossKind loss = LossKind::cross_entropy;

  std::size_t layers() const { return sizes.size() - 1; }
};

}  // namespace tandem
