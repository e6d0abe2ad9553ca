// Casts between dtypes, the same on every device. A float becomes an integer by truncation toward zero; what
// lies outside the integer's range becomes its nearest end, NaN becomes 0. Between integers the low bits are
// kept. To a float the nearest is taken (f64 and integers reach bf16 by way of f32).
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>

#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// x itself when it has that dtype already. The gradient is cast back; none flows through an integer.
Tensor cast(const Tensor& x, DType dtype);

// Operands in the layout's order: out (to), x (from).
template <Backend B>
void cast_kernel(DType to, DType from, const Layout<2>& layout, std::byte* out, const std::byte* x,
                 StreamView stream);

template <class To>
struct Cast {
  template <class From>
  constexpr To operator()(From x) const {
    if constexpr (std::integral<To> && std::floating_point<From>) {
      using Limits = std::numeric_limits<To>;
      constexpr auto low = static_cast<From>(Limits::min());
      constexpr From above = static_cast<From>(Limits::max() / 2 + 1) * 2;  // max + 1, a power of two: exact
      if (x != x) return To{0};
      return x <= low ? Limits::min() : x >= above ? Limits::max() : static_cast<To>(x);
    } else {
      return convert<To>(x);
    }
  }
};

}  // namespace tandem
