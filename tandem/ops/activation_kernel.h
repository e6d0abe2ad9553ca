// Kernels and functors of the activations (activation.h).
#pragma once

#include <cstddef>

#include "tandem/device/stream.h"
#include "tandem/ops/activation.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Layout operands: out, x.
template <Backend B>
void activation_kernel(Activation activation, DType dtype, const Layout<2>& layout, std::byte* out,
                       const std::byte* x, StreamView stream);

// The gradient of x, given the gradient g of the result and the result y. Layout operands: out, g, y.
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

// Calls f with the gradient functor of `activation`.
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

}  // namespace tandem::detail
