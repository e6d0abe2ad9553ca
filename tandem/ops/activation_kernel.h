// Kernels and functors of the activations (activation.h).
#pragma once

#include <cmath>
#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/device/stream.h"
#include "tandem/ops/activation.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Layout operands: out, x.
template <Backend B>
void activation_kernel(Activation activation, DType dtype, const Layout<2>& layout, std::byte* out,
                       const std::byte* x, StreamView stream);

// The gradient of x, given the gradient g of the result and `kept`: the result y, or x where
// gradient_needs_input(). Layout operands: out, g, kept.
template <Backend B>
void activation_gradient_kernel(Activation activation, DType dtype, const Layout<3>& layout, std::byte* out,
                                const std::byte* g, const std::byte* kept, StreamView stream);

// Each backend has its own exponential functions: activation.cpp and activation.cu define these two.
template <Backend B>
struct Sigmoid;
template <Backend B>
struct Tanh;

struct Relu {
  template <class T>
  constexpr T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
};

// erfc keeps small results accurate, where 1 + erf would cancel. The limit at −∞ is 0.
struct Gelu {
  template <class T>
  constexpr T operator()(T x) const {
    const T tail = std::erfc(-x * static_cast<T>(inverse_sqrt2));
    return tail == 0 ? T{0} : x * tail / 2;
  }
  static constexpr double inverse_sqrt2 = 0.70710678118654752440;
};

// Most gradients need only the result, so the tape does not keep the input.
struct GradientOfResult {
  static constexpr bool needs_input = false;
};
struct GradientOfInput {
  static constexpr bool needs_input = true;
};

struct SigmoidGradient : GradientOfResult {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g * y * (1 - y);
  }
};
struct TanhGradient : GradientOfResult {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g * ((1 - y) * (1 + y));
  }
};
struct ReluGradient : GradientOfResult {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return y <= 0 ? T{0} : g;
  }
};

struct GeluGradient : GradientOfInput {
  template <class T>
  constexpr T operator()(T g, T x) const {
    constexpr double inverse_sqrt_2pi = 0.39894228040143267794;
    const T probability = std::erfc(-x * static_cast<T>(Gelu::inverse_sqrt2)) / 2;
    const T density = std::exp(-x * x / 2) * static_cast<T>(inverse_sqrt_2pi);
    return g * (density == 0 ? probability : probability + x * density);
  }
};

// Calls f with the functors of `activation`: the function and its gradient. A missing case is a warning of
// the compiler, and an expect() at run time.
template <Backend B, class F>
auto on_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::sigmoid:
      return f(Sigmoid<B>{}, SigmoidGradient{});
    case Activation::tanh:
      return f(Tanh<B>{}, TanhGradient{});
    case Activation::gelu:
      return f(Gelu{}, GeluGradient{});
    case Activation::relu:
      break;
  }
  expect(activation == Activation::relu);
  return f(Relu{}, ReluGradient{});
}

}  // namespace tandem::detail
