// The exponential functions of the activations on CUDA (activation_kernel.h).
#pragma once

#include "tandem/ops/activation_kernel.h"

namespace tandem::detail {

template <>
struct Sigmoid<Backend::cuda> {
  __device__ float operator()(float x) const {
    const float e = ::expf(-::fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
  }
  __device__ double operator()(double x) const {
    const double e = ::exp(-::fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
  }
};
template <>
struct Tanh<Backend::cuda> {
  __device__ float operator()(float x) const { return ::tanhf(x); }
  __device__ double operator()(double x) const { return ::tanh(x); }
};

}  // namespace tandem::detail
