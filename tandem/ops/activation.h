// Activation functions for f32, f64 and bf16. Accurate for arguments of any magnitude; NaN propagates.
#pragma once

#include <string>
#include <string_view>

#include "tandem/core/registry.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// 1 / (1 + exp(−x)), element-wise. Throws Error for integer dtypes.
Tensor sigmoid(const Tensor& x);
/// Hyperbolic tangent, element-wise. Throws Error for integer dtypes.
Tensor tanh(const Tensor& x);
/// max(x, 0), element-wise; the gradient at 0 is 0. Throws Error for integer dtypes.
Tensor relu(const Tensor& x);

/// x · Φ(x), element-wise, where Φ is the distribution function of the normal distribution (PyTorch's default
/// form, with erf). Throws Error for integer dtypes.
Tensor gelu(const Tensor& x);
/// x · sigmoid(x), also called swish, element-wise. Throws Error for integer dtypes.
Tensor silu(const Tensor& x);
/// x · hardsigmoid(x), element-wise; the gradient at ±3 is that outside. Throws Error for integer dtypes.
Tensor hardswish(const Tensor& x);
/// min(max(x + 3, 0), 6) / 6, element-wise; the gradient at ±3 is 0. Throws Error for integer dtypes.
Tensor hardsigmoid(const Tensor& x);

/// The activations a model can be configured with.
enum class Activation { sigmoid, tanh, relu, gelu, silu, hardswish, hardsigmoid };

/// One activation. An addition touches this header, activation_kernel.h (functors) and activation.cpp (row).
struct ActivationRow {
  std::string name;
  std::string summary;
  Activation activation = Activation::sigmoid;
  Tensor (*apply)(const Tensor& x) = nullptr;
};

/// The activations by name, in the order of Activation.
const Registry<ActivationRow>& activations();
/// "relu"; the text stays valid.
const char* name_of(Activation activation);
/// The inverse of name_of(); throws Error that lists the names.
Activation parse_activation(std::string_view name);
/// The activation that is selected at run time.
Tensor activate(Activation activation, const Tensor& x);

}  // namespace tandem
