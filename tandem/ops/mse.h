// Mean squared error.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// The mean over all elements of (prediction − target)², of shape []. Both have one shape, dtype and device;
// gradients flow to both. No elements are an Error.
Tensor mse_loss(const Tensor& prediction, const Tensor& target);

}  // namespace tandem
