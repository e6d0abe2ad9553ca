// X·Xᵀ: the products of every row of X with every other. f32 and f64 (and i32, which wraps around on
// overflow). The result is symmetric: the tuned versions compute one triangle and mirror it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// x is a matrix n × k, the result n × n, in this thread's matmul_precision(). With a gradient: (g + gᵀ)·x.
Tensor xxt(const Tensor& x);
// A given version, without gradients.
Tensor xxt(const Tensor& x, Version version, MatmulPrecision precision = MatmulPrecision::fp32);

struct XxtShape {
  std::int64_t rows, columns;  // of x
  MatmulPrecision precision = MatmulPrecision::fp32;
};

template <Version V>
void xxt_kernel(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out, StreamView stream);

}  // namespace tandem
