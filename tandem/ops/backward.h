// The backward pass: walks the tape from a result to the leaves and collects their gradients.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// Adds d loss / d leaf to grad() of every leaf that requires one. `loss` must have one element. The tape
// behind it is used up: what it kept for backward is freed as soon as it was used.
void backward(const Tensor& loss);

// The same from a result of any shape, given its gradient.
void backward(const Tensor& result, const Tensor& gradient);

}  // namespace tandem
