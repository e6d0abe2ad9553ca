// Joining tensors along an axis.
#pragma once

#include <initializer_list>
#include <span>

#include "tandem/tensor/tensor.h"

namespace tandem {

// The tensors one after another along `axis` (−1 is the last). They need one dtype, one device and equal
// sizes along every other axis. Each gets its part of the gradient.
Tensor concat(std::span<const Tensor> tensors, int axis);
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
  return concat(std::span(tensors.begin(), tensors.size()), axis);
}

}  // namespace tandem
