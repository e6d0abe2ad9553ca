// Activations of floating dtypes: sigmoid, tanh and ReLU. Stable for arguments of any size; NaN stays NaN.
// Each gradient is computed from the result alone, in one pass, so that the input need not be kept. ReLU's
// gradient at 0 is 0.
#pragma once

#include <cstddef>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor relu(const Tensor& x);

enum class Activation { sigmoid, tanh, relu };

constexpr const char* name_of(Activation activation) {
  constexpr const char* names[] = {"sigmoid", "tanh", "relu"};
  return names[static_cast<int>(activation)];
}

// Operands in the layout's order: out, x.
template <Backend B>
void activation_kernel(Activation activation, DType dtype, const Layout<2>& layout, std::byte* out,
                       const std::byte* x, StreamView stream);

// The gradient of x from that of the result, g, and from the result, y. In the layout's order: out, g, y.
template <Backend B>
void activation_gradient_kernel(Activation activation, DType dtype, const Layout<3>& layout, std::byte* out,
                                const std::byte* g, const std::byte* y, StreamView stream);

struct Relu {
  template <class T>
  constexpr T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
};

struct SigmoidGradient {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g * y * (1 - y);
  }
};
struct TanhGradient {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g * ((1 - y) * (1 + y));
  }
};
struct ReluGradient {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return y <= 0 ? T{0} : g;
  }
};

// f(functor) for the gradient of the named activation.
template <class F>
void on_activation_gradient(Activation activation, F&& f) {
  switch (activation) {
    case Activation::sigmoid:
      return f(SigmoidGradient{});
    case Activation::tanh:
      return f(TanhGradient{});
    case Activation::relu:
      return f(ReluGradient{});
  }
}

}  // namespace tandem
