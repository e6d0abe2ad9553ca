// The CPU's matrix products, from OpenBLAS, which is kept on one thread: callers cut the work into tiles and
// run those with parallel_for, so there is one team of threads and not two. Matrices are row-major; lda, ldb,
// ldc are the distances, in elements, between the starts of neighbouring rows as they lie in memory.
#pragma once

#include <cstdint>

namespace tandem {

// The rows, columns and inner size of one product: (m × k) · (k × n).
struct ProductSize {
  std::int64_t m, n, k;
};

// C = alpha · op(A) · op(B) + beta · C for float and double. With transpose_a, A lies in memory as k × m.
// With beta = 0, C need not be initialised. Sizes and distances above 2³¹ − 1 are an Error.
template <class T>
void gemm_tile(bool transpose_a, bool transpose_b, ProductSize size, T alpha, const T* a, std::int64_t lda,
               const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc);

// C = X · Xᵀ with X of n × k, float or double; only the lower (else the upper) triangle of C is written.
template <class T>
void syrk_tile(bool lower, std::int64_t n, std::int64_t k, const T* x, std::int64_t ldx, T* c,
               std::int64_t ldc);

}  // namespace tandem
