// Kernels of the reductions (reduce.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

enum class Reduction { sum, max, argmax };

// `kept` is the layout of (out, x) over the kept axes, `reduced` the layout of x over the reduced axes.
// argmax writes i64. With `by_reduced` the bits of a sum depend on the reduced axes alone, not on the number
// of results (the CPU's never do).
template <Backend B>
void reduce_kernel(Reduction reduction, DType dtype, const Layout<2>& kept, const Layout<1>& reduced,
                   bool by_reduced, std::byte* out, const std::byte* x, StreamView stream);

// sum_to(x, out.shape()), of a floating dtype, into a contiguous tensor.
void sum_into(const Tensor& out, const Tensor& x);

// The gradient of max: writes value i to position index[i] of the reduced axes of `out`. `kept` is the layout
// of (values, out), `reduced` that of out; `index` is dense over `kept`.
template <Backend B>
void scatter_to_argmax_kernel(DType dtype, const Layout<2>& kept, const Layout<1>& reduced, std::byte* out,
                              const std::byte* values, const std::int64_t* index, StreamView stream);

}  // namespace tandem::detail
