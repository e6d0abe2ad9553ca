// Softmax and its logarithm along one axis, in f32, f64 and bf16 (computed in f32). The greatest element is
// taken off first, so nothing overflows. A row that is all −∞, or holds NaN or +∞, becomes NaN, as in
// PyTorch; an empty axis gives an empty result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

enum class Softmax { plain, logarithm };

// `rows` dense rows of `columns` elements; neither is 0.
template <Backend B>
void softmax_kernel(Softmax kind, DType dtype, std::int64_t rows, std::int64_t columns, std::byte* out,
                    const std::byte* x, StreamView stream);

// dx from the result y and its gradient g.
template <Backend B>
void softmax_gradient_kernel(Softmax kind, DType dtype, std::int64_t rows, std::int64_t columns,
                             std::byte* dx, const std::byte* y, const std::byte* g, StreamView stream);

}  // namespace tandem
