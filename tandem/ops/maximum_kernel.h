// Kernels and functors of maximum (maximum.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Layout operands: out, a, b. `columns` is the size of the last axis; the versions that iterate over rows use
// it and require dense operands.
template <Version V>
void maximum_kernel(DType dtype, const Layout<3>& layout, std::int64_t columns, std::byte* out,
                    const std::byte* a, const std::byte* b, StreamView stream);

// The gradient of operand x of maximum(x, other): all of `gradient` where x is larger, half where both are
// equal. Layout operands: out, gradient, x, other.
template <Backend B>
void maximum_gradient_kernel(DType dtype, const Layout<4>& layout, std::byte* out, const std::byte* gradient,
                             const std::byte* x, const std::byte* other, StreamView stream);

struct Maximum {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct MaximumGradient {
  template <class T>
  constexpr T operator()(T gradient, T x, T other) const {
    return x > other || x != x ? gradient : x == other ? gradient / 2 : T{0};
  }
};

}  // namespace tandem::detail
