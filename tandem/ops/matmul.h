// Matrix products of f32, f64 and bf16 tensors. bf16 is multiplied and accumulated in f32. On the CPU the
// bits of an element depend on its row and column alone (gemm.h), not on the number of threads or on other
// rows.
#pragma once

#include <string_view>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// a (…, m, k) · b (…, k, n) = (…, m, n); leading axes broadcast. Transposed views are read in place, other
/// non-contiguous views are copied first. k = 0 gives zeros. Throws Error for vectors, integer dtypes and
/// shapes that do not match.
Tensor matmul(const Tensor& a, const Tensor& b);

/// Arithmetic of f32 products. tf32 and bf16 round the factors to 10 and 7 mantissa bits and use tensor cores
/// where CUDA has them; accumulation stays f32. The CPU and other dtypes ignore it.
enum class MatmulPrecision { fp32, tf32, bf16 };

/// "fp32", "tf32" or "bf16".
const char* name_of(MatmulPrecision precision);
/// The inverse of name_of(); throws Error for other names.
MatmulPrecision parse_precision(std::string_view name);

/// The precision of this thread's products; fp32 unless a MatmulPrecisionScope is active.
MatmulPrecision matmul_precision();

/// Sets the precision of this thread's products, and of their gradients, until it is destroyed.
class MatmulPrecisionScope {
 public:
  /// Saves the current precision and sets `precision`.
  explicit MatmulPrecisionScope(MatmulPrecision precision);
  ~MatmulPrecisionScope();
  MatmulPrecisionScope(const MatmulPrecisionScope&) = delete;
  MatmulPrecisionScope& operator=(const MatmulPrecisionScope&) = delete;

 private:
  MatmulPrecision previous_;
};

}  // namespace tandem
