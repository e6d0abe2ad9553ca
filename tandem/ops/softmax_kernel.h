// Kernels of softmax and log_softmax (softmax.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

enum class SoftmaxKind { softmax, log_softmax };

// `rows` dense rows of `columns` elements; neither is 0.
template <Backend B>
void softmax_kernel(SoftmaxKind kind, DType dtype, std::int64_t rows, std::int64_t columns, std::byte* out,
                    const std::byte* x, StreamView stream);

// dx, given the result y and its gradient g.
template <Backend B>
void softmax_gradient_kernel(SoftmaxKind kind, DType dtype, std::int64_t rows, std::int64_t columns,
                             std::byte* dx, const std::byte* y, const std::byte* g, StreamView stream);

}  // namespace tandem::detail
