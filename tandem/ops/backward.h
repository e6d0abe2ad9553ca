// The backward pass: traverses the autograd tape from a result to its leaves and accumulates their gradients.
#pragma once

#include <functional>

#include "tandem/tensor/tensor.h"

namespace tandem {

struct Node;

/// Also loss.backward(). Adds d loss / d leaf to grad() of every leaf that requires a gradient. Consumes the
/// tape: saved tensors are freed as soon as they have been used, so a second call for the same result throws
/// Error. Also throws Error unless `loss` has one element and depends on a leaf that requires a gradient.
void backward(const Tensor& loss);

/// The same for a result of any shape, given its gradient, which must have the same shape.
void backward(const Tensor& result, const Tensor& gradient);

/// The same as backward(loss), and calls `on_leaf` for every leaf as soon as its grad() is complete, while
/// the pass goes on: in the reverse order of their last uses.
void backward(const Tensor& loss, const std::function<void(const Node& leaf)>& on_leaf);

}  // namespace tandem
