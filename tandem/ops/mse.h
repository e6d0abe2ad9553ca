// Mean squared error loss.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The mean over all elements of (prediction − target)², of shape []. Gradients flow to both operands. Throws
/// Error unless both have the same shape, floating dtype and device and at least one element.
Tensor mse_loss(const Tensor& prediction, const Tensor& target);

}  // namespace tandem
