// What operations on rows share on CUDA (softmax, cross-entropy): folds over the threads of a warp or of a
// block, through fixed trees.
#pragma once

#include "tandem/ops/elementwise.cuh"

namespace tandem::warps {

inline constexpr int threads = 256;
inline constexpr int warp = 32;

struct Greater {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};
struct Plus {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

__device__ inline float exponential(float value) {
  return expf(value);
}
__device__ inline double exponential(double value) {
  return exp(value);
}
__device__ inline float logarithm(float value) {
  return logf(value);
}
__device__ inline double logarithm(double value) {
  return log(value);
}
template <class C>
__device__ C lowest() {
  return -static_cast<C>(INFINITY);
}

// Every thread of the warp gets the result.
template <class F, class C>
__device__ C join_warp(F f, C value) {
  for (int mask = warp / 2; mask > 0; mask /= 2) value = f(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}

// Every thread of the block gets the result.
template <class F, class C>
__device__ C join_block(F f, C value) {
  __shared__ C shared[threads / warp];
  value = join_warp(f, value);
  __syncthreads();
  if (threadIdx.x % warp == 0) shared[threadIdx.x / warp] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < threads / warp; ++i) value = f(value, shared[i]);
  return value;
}

}  // namespace tandem::warps
