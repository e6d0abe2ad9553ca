// Reductions over axes: sum, mean, max and argmax. No axes means all of them. f32 and bf16 sums are
// accumulated in f64 and rounded once, in an order that depends only on the shape: the same input gives the
// same bits for any number of threads. All throw Error for an axis out of range.
#pragma once

#include <cstdint>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of the reductions.
struct ReduceOptions {
  bool keep_axes = false;  ///< keep reduced axes with size 1, as PyTorch's keepdim
};

/// The sum over `axes`; integers are summed in i64. An empty sum is 0.
Tensor sum(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
/// The mean over `axes`. Throws Error for integer dtypes and for an empty mean.
Tensor mean(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
/// The maximum over `axes`. NaN propagates. The gradient goes to the first maximal element. Throws Error if
/// there is no element to reduce.
Tensor max(const Tensor& x, const Dims& axes = {}, ReduceOptions options = {});
/// The i64 index of the first maximal element along `axis`; NaN counts as the maximum. Throws Error if there
/// is no element to reduce.
Tensor argmax(const Tensor& x, int axis, ReduceOptions options = {});

/// The sum of x over the axes along which `shape` was broadcast to the shape of x: the gradient of a
/// broadcast.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace tandem
