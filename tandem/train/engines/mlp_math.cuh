// Activations and their derivatives for the perceptron kernels.
#pragma once

#include "tandem/train/engines/mlp_shape.h"

namespace tandem::detail {

// The compiler warns of an enumerator without a case. A trap there, a branch per element, cost 1 to 2 % of a
// step.
__device__ inline float activated(MlpActivation activation, float z) {
  switch (activation) {
    case MlpActivation::sigmoid:
      return __fdividef(1, 1 + __expf(-z));
    case MlpActivation::tanh:
      return tanhf(z);
    case MlpActivation::relu:
      return fmaxf(z, 0);
  }
  __builtin_unreachable();
}

// The derivative, computed from the activated value.
__device__ inline float activation_slope(MlpActivation activation, float a) {
  switch (activation) {
    case MlpActivation::sigmoid:
      return a * (1 - a);
    case MlpActivation::tanh:
      return (1 - a) * (1 + a);
    case MlpActivation::relu:
      return a > 0 ? 1.0f : 0.0f;
  }
  __builtin_unreachable();
}

// The value as a multiple of 2^-20, 1e-6 or so: up to 2^33, such values add up in a double without rounding,
// in any order, so that the sum does not depend on how the steps are divided.
__device__ inline double exact_addend(float value) {
  return rintf(value * 1048576.0f) * (1 / 1048576.0f);  // exact: the factors are powers of two
}

}  // namespace tandem::detail
