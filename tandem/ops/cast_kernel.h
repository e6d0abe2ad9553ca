// Kernel and functor of cast (cast.h).
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>

#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

// Layout operands: out (dtype `to`), x (dtype `from`).
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

}  // namespace tandem::detail
