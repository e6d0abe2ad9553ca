// Kernel of pow (pow.h).
#pragma once

#include <cstddef>

#include "tandem/core/dtype.h"
#include "tandem/device/device.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

// Layout operands: out, x.
template <Backend B>
void pow_kernel(double exponent, DType dtype, const Layout<2>& layout, std::byte* out, const std::byte* x,
                StreamView stream);

}  // namespace tandem::detail
