// An operation of your own: softplus(x) = log(1 + exp(x)), with its gradient, on the CPU and in CUDA.
#pragma once

#include <tandem/tandem.h>

/// f32. Gradient: g · sigmoid(x).
tandem::Tensor softplus(const tandem::Tensor& x);

// The kernels: out = softplus(x), and out = g · sigmoid(x).
template <tandem::Backend B>
void softplus_kernel(float* out, const float* x, std::int64_t count, tandem::StreamView stream);
template <tandem::Backend B>
void softplus_gradient_kernel(float* out, const float* g, const float* x, std::int64_t count,
                              tandem::StreamView stream);
