// What cuBLAS calls the precision of f32 products.
#pragma once

#include "tandem/device/cuda.h"
#include "tandem/ops/matmul.h"

namespace tandem {

inline cublasComputeType_t product_type(MatmulPrecision precision) {
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

}  // namespace tandem
