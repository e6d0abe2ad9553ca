// The exponential functions of the activations on the CPU (activation_kernel.h).
#pragma once

#include <cmath>

#include "tandem/ops/activation_kernel.h"

namespace tandem::detail {

template <>
struct Sigmoid<Backend::cpu> {
  [[gnu::always_inline]] float operator()(float x) const { return vector_sigmoid(x); }
  double operator()(double x) const {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1) / (1 + e);
  }
};
template <>
struct Tanh<Backend::cpu> {
  [[gnu::always_inline]] float operator()(float x) const { return vector_tanh(x); }
  double operator()(double x) const { return std::tanh(x); }
};

}  // namespace tandem::detail
