// Matrix products of f32, f64 and bf16 tensors, by BLAS. bf16 is multiplied and added up in f32. The inner
// size is never split between threads, so an element's sum does not depend on how many there are, but for the
// last bits where the BLAS handles the edge of a tile by another kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/blas.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// a (…, m, k) · b (k, n) or (…, k, n) = (…, m, n); leading axes broadcast. A transposed view is read as it
// lies; other views are copied first. An inner size of 0 gives zeros. Vectors are an Error.
Tensor matmul(const Tensor& a, const Tensor& b);

// tf32 and bf16 round the factors of f32 products to 10 and 7 bits of mantissa where CUDA has tensor cores
// for that, sums stay f32; the CPU and other dtypes take no notice.
enum class MatmulPrecision { fp32, tf32, bf16 };

MatmulPrecision matmul_precision();

// While it lives, products of this thread, and their gradients, are computed in this precision.
class MatmulPrecisionScope {
 public:
  explicit MatmulPrecisionScope(MatmulPrecision precision);
  ~MatmulPrecisionScope();
  MatmulPrecisionScope(const MatmulPrecisionScope&) = delete;
  MatmulPrecisionScope& operator=(const MatmulPrecisionScope&) = delete;

 private:
  MatmulPrecision previous_;
};

// How the matrices of one operand lie: row-major as k × m when transposed, rows `distance` elements apart.
struct MatrixForm {
  bool transposed = false;
  std::int64_t distance = 1;
};

// `batches` has the operands (c, a, b) over the leading axes; each matrix of c is dense.
struct MatmulPlan {
  ProductSize size;
  MatrixForm a, b;
  Layout<3> batches;
};

// No size is 0.
template <Backend B>
void matmul_kernel(DType dtype, const MatmulPlan& plan, MatmulPrecision precision, std::byte* c,
                   const std::byte* a, const std::byte* b, StreamView stream);

}  // namespace tandem
