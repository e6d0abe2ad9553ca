// Activation functions for f32, f64 and bf16: sigmoid, tanh and ReLU. Accurate for arguments of any
// magnitude; NaN propagates. Each gradient needs only the result, so the tape does not keep the input.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// 1 / (1 + exp(−x)), element-wise. Throws Error for integer dtypes.
Tensor sigmoid(const Tensor& x);
/// Hyperbolic tangent, element-wise. Throws Error for integer dtypes.
Tensor tanh(const Tensor& x);
/// max(x, 0), element-wise; the gradient at 0 is 0. Throws Error for integer dtypes.
Tensor relu(const Tensor& x);

/// The activations a model can be configured with.
enum class Activation { sigmoid, tanh, relu };

/// "sigmoid", "tanh" or "relu".
constexpr const char* name_of(Activation activation) {
  constexpr const char* names[] = {"sigmoid", "tanh", "relu"};
  return names[static_cast<int>(activation)];
}

}  // namespace tandem
