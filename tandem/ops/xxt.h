// X·Xᵀ: the products of every row of X with every other. f32 and f64 (and i32, which wraps around on
// overflow). The result is symmetric: the tuned versions compute one triangle and mirror it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// How f32 is multiplied on CUDA: exactly, or on the tensor cores, which keep 10 bits of each factor's
// mantissa (relative error about 1e-3 of the largest products). The CPU is always exact.
enum class XxtPrecision { exact, tf32 };

// x is a matrix n × k, the result n × n. With a gradient: (g + gᵀ)·x.
Tensor xxt(const Tensor& x, XxtPrecision precision = XxtPrecision::exact);
// A given version, without gradients.
Tensor xxt(const Tensor& x, Version version, XxtPrecision precision = XxtPrecision::exact);

struct XxtShape {
  std::int64_t rows, columns;  // of x
  XxtPrecision precision = XxtPrecision::exact;
};

template <Version V>
void xxt_kernel(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out, StreamView stream);

}  // namespace tandem
