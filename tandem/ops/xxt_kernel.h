// Shape and kernel of xxt (xxt.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

struct XxtShape {
  std::int64_t rows;     // of x
  std::int64_t columns;  // of x
  MatmulPrecision precision = MatmulPrecision::fp32;
};

template <Version V>
void xxt_kernel(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out, StreamView stream);

}  // namespace tandem::detail
