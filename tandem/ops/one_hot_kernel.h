// Kernel of one_hot (one_hot.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// All operands are dense; classes is not 0.
template <Backend B>
void one_hot_kernel(DType dtype, DType label_dtype, std::int64_t rows, std::int64_t classes, std::byte* out,
                    const std::byte* labels, StreamView stream);

}  // namespace tandem::detail
