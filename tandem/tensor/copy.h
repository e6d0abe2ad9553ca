// Copies between tensors of the same shape and different strides, for contiguous(), reshape() and slices.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

// Copies the elements of `from` into the memory of `to`. Both must have the same shape, dtype and device;
// strides may differ; the memory must not overlap.
void copy_into(const Tensor& to, const Tensor& from);

// Sets all elements to zero. `tensor` must be contiguous.
void clear(const Tensor& tensor);

}  // namespace tandem
