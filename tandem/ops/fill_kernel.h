// Kernel of full (fill.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

template <Backend B>
void fill_kernel(DType dtype, std::byte* out, std::int64_t count, double value, StreamView stream);

}  // namespace tandem::detail
