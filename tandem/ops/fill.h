// Tensors of one value.
#pragma once

#include <cstddef>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// `value` converted to the dtype; a value the dtype cannot hold is an Error.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = cpu_device);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = cpu_device);

template <Backend B>
void fill_kernel(DType dtype, std::byte* out, std::int64_t count, double value, StreamView stream);

}  // namespace tandem
