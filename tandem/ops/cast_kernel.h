// Kernel of cast (cast.h); its functor is detail::Cast in core/convert.h.
#pragma once

#include <cstddef>

#include "tandem/core/convert.h"
#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

// Layout operands: out (dtype `to`), x (dtype `from`).
template <Backend B>
void cast_kernel(DType to, DType from, const Layout<2>& layout, std::byte* out, const std::byte* x,
                 StreamView stream);

}  // namespace tandem::detail
