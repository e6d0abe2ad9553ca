// Checks many tensors for NaN and infinity at once. A training loop checks all weights after every epoch, so
// it takes one pass over them and, on CUDA, one launch per 160 tensors.
#pragma once

#include <span>

#include "tandem/tensor/tensor.h"

namespace tandem {

// True if no tensor contains NaN or infinity. Dtypes and shapes may differ, the device must be the same.
// Integer tensors are always finite; an empty list gives true.
bool all_finite(std::span<const Tensor> tensors);

}  // namespace tandem
