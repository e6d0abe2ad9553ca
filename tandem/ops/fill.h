// Tensors filled with one value.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// A tensor filled with `value`, converted to `dtype`. Throws Error if an integer dtype cannot hold the
/// value.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = cpu_device);
/// A tensor of zeros.
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);
/// A tensor of ones.
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);

}  // namespace tandem
