// Matrix products on CUDA, by cuBLAS. cuBLAS is column-major, so it computes Cᵀ = Bᵀ · Aᵀ, whose column-major
// layout is that of the row-major C.
#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/cublas_compute_type.cuh"
#include "tandem/ops/matmul_kernel.h"

namespace tandem::detail {
namespace {

int to_cublas(std::int64_t value) {
  check(value <= std::numeric_limits<int>::max(),
        "[matmul] expected sizes and strides below {} for cuBLAS, got {}", std::numeric_limits<int>::max(),
        value);
  return static_cast<int>(value);
}

cublasOperation_t operation(MatrixLayout layout) {
  return layout.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

template <class T>
constexpr cudaDataType_t data_type = CUDA_R_32F;
template <>
constexpr cudaDataType_t data_type<double> = CUDA_R_64F;
template <>
constexpr cudaDataType_t data_type<BFloat16> = CUDA_R_16BF;

template <class T>
cublasComputeType_t compute_type(MatmulPrecision precision) {
  if constexpr (std::same_as<T, double>)
    return CUBLAS_COMPUTE_64F;
  else if constexpr (std::same_as<T, float>)
    return cublas_compute_type(precision);
  else
    return CUBLAS_COMPUTE_32F;
}

// cuBLAS iterates over one strided batch axis; outer axes of broadcast or irregular batches are a loop.
template <class T>
void multiply_cuda(const MatmulPlan& plan, MatmulPrecision precision, T* c, const T* a, const T* b,
                   StreamView stream) {
  const cublasHandle_t handle = cublas_handle(stream);
  const ComputeType<T> one = 1, zero = 0;
  const auto& batches = plan.batches;
  const int last = batches.rank - 1;
  const int m = to_cublas(plan.size.m), n = to_cublas(plan.size.n), k = to_cublas(plan.size.k);
  // cuBLAS requires a leading dimension of at least the row length even for a single row.
  const int lda =
      to_cublas(std::max(plan.a.leading_dimension, plan.a.transposed ? plan.size.m : plan.size.k));
  const int ldb =
      to_cublas(std::max(plan.b.leading_dimension, plan.b.transposed ? plan.size.k : plan.size.n));
  for (std::int64_t first = 0; first < batches.numel; first += batches.sizes[last]) {
    const auto offset = batches.offsets(first);
    cublas_check(
        cublasGemmStridedBatchedEx(handle, operation(plan.b), operation(plan.a), n, m, k, &one, b + offset[2],
                                   data_type<T>, ldb, batches.strides[2][last], a + offset[1], data_type<T>,
                                   lda, batches.strides[1][last], &zero, c + offset[0], data_type<T>, n,
                                   batches.strides[0][last], to_cublas(batches.sizes[last]),
                                   compute_type<T>(precision), CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
  }
}

}  // namespace

template <>
void matmul_kernel<Backend::cuda>(DType dtype, const MatmulPlan& plan, MatmulPrecision precision,
                                  std::byte* c, const std::byte* a, const std::byte* b, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "matmul", [&]<class T>() {
    multiply_cuda(plan, precision, reinterpret_cast<T*>(c), reinterpret_cast<const T*>(a),
                  reinterpret_cast<const T*>(b), stream);
  });
}

}  // namespace tandem::detail
