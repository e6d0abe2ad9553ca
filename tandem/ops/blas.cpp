#include "tandem/ops/blas.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// OpenBLAS threads of its own would fight with the team; once is enough, the setting is the library's.
void keep_on_one_thread() {
  static const bool done = (openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

blasint to_blas(std::int64_t value) {
  check(value <= std::numeric_limits<blasint>::max(),
        "[matmul] expected sizes and strides below {} for the CPU's BLAS, got {}",
        std::numeric_limits<blasint>::max(), value);
  return static_cast<blasint>(value);
}

// BLAS insists on a distance of at least 1 even where there is a single row.
blasint to_distance(std::int64_t value) {
  return to_blas(std::max<std::int64_t>(value, 1));
}

}  // namespace

template <class T>
void gemm_tile(bool transpose_a, bool transpose_b, ProductSize size, T alpha, const T* a, std::int64_t lda,
               const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  keep_on_one_thread();
  const auto gemm = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemm;
    else
      return cblas_dgemm;
  }();
  gemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
       to_blas(size.m), to_blas(size.n), to_blas(size.k), alpha, a, to_distance(lda), b, to_distance(ldb),
       beta, c, to_distance(ldc));
}

template <class T>
void syrk_tile(bool lower, std::int64_t n, std::int64_t k, const T* x, std::int64_t ldx, T* c,
               std::int64_t ldc) {
  keep_on_one_thread();
  const auto syrk = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_ssyrk;
    else
      return cblas_dsyrk;
  }();
  syrk(CblasRowMajor, lower ? CblasLower : CblasUpper, CblasNoTrans, to_blas(n), to_blas(k), T{1}, x,
       to_distance(ldx), T{0}, c, to_distance(ldc));
}

template void gemm_tile<float>(bool, bool, ProductSize, float, const float*, std::int64_t, const float*,
                               std::int64_t, float, float*, std::int64_t);
template void gemm_tile<double>(bool, bool, ProductSize, double, const double*, std::int64_t, const double*,
                                std::int64_t, double, double*, std::int64_t);
template void syrk_tile<float>(bool, std::int64_t, std::int64_t, const float*, std::int64_t, float*,
                               std::int64_t);
template void syrk_tile<double>(bool, std::int64_t, std::int64_t, const double*, std::int64_t, double*,
                                std::int64_t);

}  // namespace tandem
