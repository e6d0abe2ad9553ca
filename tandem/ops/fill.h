// New tensors: uninitialized or filled with one value.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// A tensor of uninitialized memory.
Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);
/// A tensor filled with `value`, converted to `dtype`. Throws Error if an integer dtype cannot hold the
/// value.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = cpu_device);
/// A tensor of zeros.
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);
/// A tensor of ones.
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);

/// The same in f32: zeros({2, 3}, device).
Tensor empty(const Shape& shape, Device device);
Tensor full(const Shape& shape, double value, Device device);
Tensor zeros(const Shape& shape, Device device);
Tensor ones(const Shape& shape, Device device);

/// Zeros and ones of the shape, dtype and device of x.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

}  // namespace tandem
