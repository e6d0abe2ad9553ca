// Named tensors, as in a state dict or a weight file.
#pragma once

#include <string>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// A tensor and its name, such as "0.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// In the order of registration.
using NamedTensors = std::vector<NamedTensor>;

}  // namespace tandem
