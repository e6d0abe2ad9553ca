// Copy and memset kernels. They move bits, so they depend only on the size of an element.
#pragma once

#include <cstddef>

#include "tandem/device/device.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

// Operand 0 of `layout` is `to`, operand 1 is `from`. They must not overlap.
template <Backend B>
void copy_kernel(std::byte* to, const std::byte* from, std::size_t element_size, const Layout<2>& layout,
                 StreamView stream);

template <Backend B>
void clear_kernel(std::byte* to, std::size_t bytes, StreamView stream);

}  // namespace tandem::detail
