// The backward pass: traverses the autograd tape from a result to its leaves and accumulates their gradients.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Also loss.backward(). Adds d loss / d leaf to grad() of every leaf that requires a gradient. Consumes the
/// tape: saved tensors are freed as soon as they have been used, so a second call for the same result throws
/// Error. Also throws Error unless `loss` has one element and depends on a leaf that requires a gradient.
void backward(const Tensor& loss);

/// The same for a result of any shape, given its gradient, which must have the same shape.
void backward(const Tensor& result, const Tensor& gradient);

}  // namespace tandem
