// Plan and kernel of matmul (matmul.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/gemm.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Memory layout of the matrices of one operand: row-major, or row-major of the transpose, with stored rows
// `leading_dimension` elements apart.
struct MatrixLayout {
  bool transposed = false;
  std::int64_t leading_dimension = 1;
};

// `batches` is the layout of (c, a, b) over the leading axes; each matrix of c is dense.
struct MatmulPlan {
  GemmSize size;
  MatrixLayout a, b;
  Layout<3> batches;
};

// out = a · b, into a contiguous tensor of the shape that matmul(a, b) has.
void multiply_into(const Tensor& out, Tensor a, Tensor b, MatmulPrecision precision);

// c = a · b. No size is 0.
template <Backend B>
void matmul_kernel(DType dtype, const MatmulPlan& plan, MatmulPrecision precision, std::byte* c,
                   const std::byte* a, const std::byte* b, StreamView stream);

}  // namespace tandem::detail
