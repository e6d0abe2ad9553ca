// Element-wise maximum, with broadcasting. NaN wins, as in NumPy. Where both operands are equal the gradient
// goes half to each, as in PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

Tensor maximum(const Tensor& a, const Tensor& b);
// A given version, without gradients.
Tensor maximum(const Tensor& a, const Tensor& b, Version version);

// Operands in the layout's order: out, a, b. `columns` is the size of the last axis, for the versions that
// work by rows; they get dense operands.
template <Version V>
void maximum_kernel(DType dtype, const Layout<3>& layout, std::int64_t columns, std::byte* out,
                    const std::byte* a, const std::byte* b, StreamView stream);

// The part of `gradient` that belongs to `mine`: all where it is greater, half where both are equal.
// Operands: out, gradient, mine, other.
template <Backend B>
void maximum_share_kernel(DType dtype, const Layout<4>& layout, std::byte* out, const std::byte* gradient,
                          const std::byte* mine, const std::byte* other, StreamView stream);

struct Maximum {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct MaximumShare {
  template <class T>
  constexpr T operator()(T gradient, T mine, T other) const {
    return mine > other || mine != mine ? gradient : mine == other ? gradient / 2 : T{0};
  }
};

}  // namespace tandem
