// The host-only test for Winograd on CUDA, apart from the kernels: nvcc cannot compile the CPU headers.
#include "tandem/ops/conv/winograd.cuh"
#include "tandem/ops/conv/winograd.h"

namespace tandem::detail {

bool is_winograd_profitable_on_cuda(const Conv2dPlan& plan) {
  return plan.precision == MatmulPrecision::fp32 && is_winograd_profitable(plan);
}

}  // namespace tandem::detail
