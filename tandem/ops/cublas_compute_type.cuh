// The cuBLAS compute type of a MatmulPrecision.
#pragma once

#include "tandem/device/cuda.h"
#include "tandem/ops/matmul.h"

namespace tandem::detail {

inline cublasComputeType_t cublas_compute_type(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::fp32:
      break;
    case MatmulPrecision::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case MatmulPrecision::bf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
  }
  return CUBLAS_COMPUTE_32F;
}

}  // namespace tandem::detail
