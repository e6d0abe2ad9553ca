// What is asked on the host, apart from the kernels: nvcc does not read the CPU's headers.
#include "tandem/ops/winograd.cuh"
#include "tandem/ops/winograd.h"

namespace tandem {

bool winograd_pays_on_cuda(const Conv2dPlan& plan) {
  return plan.precision == MatmulPrecision::fp32 && winograd_pays(plan);
}

}  // namespace tandem
