// Activations of the perceptrons' kernels, and their slopes.
#pragma once

#include "tandem/ops/activation.h"

namespace tandem {

__device__ inline float activated(Activation activation, float z) {
  if (activation == Activation::sigmoid) return __fdividef(1, 1 + __expf(-z));
  return activation == Activation::tanh ? tanhf(z) : fmaxf(z, 0);
}
__device__ inline float activation_slope(Activation activation, float a) {  // from the result
  if (activation == Activation::sigmoid) return a * (1 - a);
  return activation == Activation::tanh ? (1 - a) * (1 + a) : (a > 0 ? 1.0f : 0.0f);
}

}  // namespace tandem
