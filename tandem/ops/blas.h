// Single-threaded matrix products from OpenBLAS. Callers split the work into tiles and run them with
// parallel_for, so OpenBLAS must not start a second thread pool. Matrices are row-major; a leading dimension
// is the distance in elements between consecutive rows in memory.
#pragma once

#include <cstdint>

namespace tandem::detail {

// (m × k) · (k × n).
struct GemmSize {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// A transposed operand is stored as its transpose.
template <class T>
struct GemmOperand {
  const T* data;
  std::int64_t leading_dimension;
  bool transposed = false;
};

// C = alpha · op(A) · op(B) + beta · C. With beta = 0, C may be uninitialized.
template <class T>
struct Gemm {
  GemmSize size;
  GemmOperand<T> a;
  GemmOperand<T> b;
  T* c;
  std::int64_t leading_dimension_c;
  T alpha = 1;
  T beta = 0;
};

// For float and double. Throws Error for sizes and leading dimensions above 2³¹ − 1.
template <class T>
void gemm_tile(const Gemm<T>& gemm);

// C = X · Xᵀ for X (n × k) of float or double. Writes only the lower or only the upper triangle of C.
template <class T>
void syrk_tile(bool lower, std::int64_t n, std::int64_t k, const T* x, std::int64_t ldx, T* c,
               std::int64_t ldc);

}  // namespace tandem::detail
