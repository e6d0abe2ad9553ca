#include "tandem/ops/blas.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "tandem/core/check.h"

namespace tandem::detail {
namespace {

// OpenBLAS threads would compete with our own. The setting is global to the library, so it is made once.
void use_one_blas_thread() {
  static const bool done = (openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

blasint to_blas(std::int64_t value) {
  check(value <= std::numeric_limits<blasint>::max(),
        "[matmul] expected sizes and strides below {} for the CPU BLAS, got {}",
        std::numeric_limits<blasint>::max(), value);
  return static_cast<blasint>(value);
}

// BLAS requires a leading dimension of at least 1 even for a single row.
blasint to_leading_dimension(std::int64_t value) {
  return to_blas(std::max<std::int64_t>(value, 1));
}

}  // namespace

template <class T>
void gemm_tile(const Gemm<T>& gemm) {
  use_one_blas_thread();
  const auto cblas_gemm = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_sgemm;
    else
      return cblas_dgemm;
  }();
  const auto transpose = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  cblas_gemm(CblasRowMajor, transpose(gemm.a.transposed), transpose(gemm.b.transposed), to_blas(gemm.size.m),
             to_blas(gemm.size.n), to_blas(gemm.size.k), gemm.alpha, gemm.a.data,
             to_leading_dimension(gemm.a.leading_dimension), gemm.b.data,
             to_leading_dimension(gemm.b.leading_dimension), gemm.beta, gemm.c,
             to_leading_dimension(gemm.leading_dimension_c));
}

template <class T>
void syrk_tile(bool lower, std::int64_t n, std::int64_t k, const T* x, std::int64_t ldx, T* c,
               std::int64_t ldc) {
  use_one_blas_thread();
  const auto syrk = [] {
    if constexpr (std::is_same_v<T, float>)
      return cblas_ssyrk;
    else
      return cblas_dsyrk;
  }();
  syrk(CblasRowMajor, lower ? CblasLower : CblasUpper, CblasNoTrans, to_blas(n), to_blas(k), T{1}, x,
       to_leading_dimension(ldx), T{0}, c, to_leading_dimension(ldc));
}

template void gemm_tile<float>(const Gemm<float>&);
template void gemm_tile<double>(const Gemm<double>&);
template void syrk_tile<float>(bool, std::int64_t, std::int64_t, const float*, std::int64_t, float*,
                               std::int64_t);
template void syrk_tile<double>(bool, std::int64_t, std::int64_t, const double*, std::int64_t, double*,
                                std::int64_t);

}  // namespace tandem::detail
