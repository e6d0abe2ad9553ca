// Copying between layouts of one shape: what contiguous(), reshape() and slices need. Moves bits, knows no
// types but their size.
#pragma once

#include <cstddef>

#include "tandem/device/device.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Writes `from` into the memory of `to`: same shape, dtype and device, any strides, no overlap.
void copy_into(const Tensor& to, const Tensor& from);

// All bytes zero, which is 0 in every dtype. `tensor` must be contiguous.
void clear(const Tensor& tensor);

template <Backend B>
void copy_kernel(std::byte* to, const std::byte* from, std::size_t element_size, const Layout<2>& layout,
                 StreamView stream);
template <Backend B>
void clear_kernel(std::byte* to, std::size_t bytes, StreamView stream);

}  // namespace tandem
