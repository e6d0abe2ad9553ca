// Activations and their derivatives for the perceptron kernels.
#pragma once

#include "tandem/ops/activation.h"

namespace tandem::detail {

// An enumerator without a case traps instead of using another activation.
__device__ inline float activated(Activation activation, float z) {
  switch (activation) {
    case Activation::sigmoid:
      return __fdividef(1, 1 + __expf(-z));
    case Activation::tanh:
      return tanhf(z);
    case Activation::relu:
      return fmaxf(z, 0);
  }
  __trap();
  return 0;
}

// The derivative, computed from the activated value.
__device__ inline float activation_slope(Activation activation, float a) {
  switch (activation) {
    case Activation::sigmoid:
      return a * (1 - a);
    case Activation::tanh:
      return (1 - a) * (1 + a);
    case Activation::relu:
      return a > 0 ? 1.0f : 0.0f;
  }
  __trap();
  return 0;
}

}  // namespace tandem::detail
