// Building blocks of row-wise operations on CUDA (softmax, cross-entropy): reductions over the threads of a
// warp or a block in a fixed order, so that results are reproducible.
#pragma once

#include "tandem/ops/elementwise.cuh"

namespace tandem::detail::row_ops {

inline constexpr int threads = 256;
inline constexpr int warp_size = 32;

struct Max {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};
struct Sum {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

__device__ inline float exponential(float value) {
  return ::expf(value);
}
__device__ inline double exponential(double value) {
  return ::exp(value);
}
__device__ inline float logarithm(float value) {
  return ::logf(value);
}
__device__ inline double logarithm(double value) {
  return ::log(value);
}
template <class C>
__device__ C negative_infinity() {
  return -static_cast<C>(INFINITY);
}

// Every thread of the warp gets the result.
template <class F, class C>
__device__ C warp_reduce(F f, C value) {
  for (int mask = warp_size / 2; mask > 0; mask /= 2)
    value = f(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}

// Every thread of the block gets the result.
template <class F, class C>
__device__ C block_reduce(F f, C value) {
  __shared__ C shared[threads / warp_size];
  value = warp_reduce(f, value);
  __syncthreads();
  if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < threads / warp_size; ++i) value = f(value, shared[i]);
  return value;
}

}  // namespace tandem::detail::row_ops
