// Concatenation of tensors along an axis.
#pragma once

#include <initializer_list>
#include <span>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The tensors concatenated along `axis` (−1 is the last). Each input receives its slice of the gradient.
/// Throws Error if `tensors` is empty or they differ in dtype, device or any other axis.
Tensor concat(std::span<const Tensor> tensors, int axis);
/// The same for a braced list: concat({a, b}, 0).
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
  return concat(std::span(tensors.begin(), tensors.size()), axis);
}

}  // namespace tandem
