// Shape and kernel of xxt (xxt.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/core/on_dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

using XxtTypes = TypeList<float, double, std::int32_t>;

// Unsigned for integers, so that overflow wraps around.
template <class T>
using SumType =
    std::conditional_t<std::is_integral_v<T>,
                       std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>, T>;

struct XxtShape {
  std::int64_t rows;     // of x
  std::int64_t columns;  // of x
  MatmulPrecision precision = MatmulPrecision::fp32;
};

template <Version V>
void xxt_kernel(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out, StreamView stream);

}  // namespace tandem::detail
