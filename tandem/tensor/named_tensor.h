// A tensor with the name it has in a state dict or a weight file: "0.weight".
#pragma once

#include <string>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

using NamedTensors = std::vector<NamedTensor>;  // in the order they were made

}  // namespace tandem
