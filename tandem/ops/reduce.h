// Reductions over axes: sum, mean, maximum and its index. No axes means all of them. f32 and bf16 sums are
// collected in f64 and rounded once, in an order that depends on the shape alone: same input, same bits,
// whatever the number of threads. Integers are summed in i64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct ReduceOptions {
  bool keep_axes = false;  // reduced axes stay, with size 1
};

Tensor sum(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
Tensor mean(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
// The gradient goes to the first greatest element. NaN is greater than any number. Empty axes are an Error.
Tensor max(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
// Index (i64) of the first greatest element along one axis.
Tensor argmax(const Tensor& x, int axis, ReduceOptions options = {});

// Sums the axes that broadcasting to x's shape had repeated: the gradient of a broadcast.
Tensor sum_to(const Tensor& x, const Shape& shape);

enum class Reduction { sum, max, argmax };

// `kept` has the operands (out, x) over the axes that stay, `reduced` (x) those that go. argmax writes i64.
template <Backend B>
void reduce_kernel(Reduction reduction, DType dtype, const Layout<2>& kept, const Layout<1>& reduced,
                   std::byte* out, const std::byte* x, StreamView stream);

// The reverse of taking an element by its argmax: value i goes to out at position index[i] of the reduced
// axes. `kept` has the operands (values, out), `reduced` (out); index is dense over `kept`.
template <Backend B>
void place_kernel(DType dtype, const Layout<2>& kept, const Layout<1>& reduced, std::byte* out,
                  const std::byte* values, const std::int64_t* index, StreamView stream);

}  // namespace tandem
