// Kernels and functors of the activations (activation.h).
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/device/stream.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/vector_math.h"
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

// Each backend has its own exponential functions: activation_cpu.h and activation.cuh define these two.
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

// The limit at −∞ is 0: x is limited where the other factor is 0 already. So every expression is one that the
// compiler vectorizes, with no branch.
template <Backend B>
struct Silu {
  static constexpr int limit = 10000;

  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T x) const {
    const T low = x < -limit ? T{-limit} : x;
    return low * Sigmoid<B>{}(x);
  }
};

// condition ? yes : no. From two nested conditions on f32 GCC makes branches, which are not vectorized.
template <class T>
[[gnu::always_inline]] constexpr T choose(bool condition, T yes, T no) {
  if constexpr (std::same_as<T, float>)
    return vector_select(condition, yes, no);
  else
    return condition ? yes : no;
}

struct Hardsigmoid {
  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T x) const {
    const T moved = x + 3, low = choose(moved < 0, T{0}, moved);
    return choose(low > 6, T{6}, low) * static_cast<T>(1.0 / 6);
  }
};

struct Hardswish {
  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T x) const {
    return choose(x < -3, T{-3}, x) * Hardsigmoid{}(x);
  }
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

template <Backend B>
struct SiluGradient : GradientOfInput {
  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T g, T x) const {
    constexpr T limit = Silu<B>::limit;
    const T low = x < -limit ? -limit : x, moderate = low > limit ? limit : low;
    const T s = Sigmoid<B>{}(x);
    return g * (s * (1 + moderate * (1 - s)));
  }
};

struct HardsigmoidGradient : GradientOfInput {
  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T g, T x) const {
    return choose((x <= -3) | (x >= 3), T{0}, g * static_cast<T>(1.0 / 6));
  }
};

struct HardswishGradient : GradientOfInput {
  template <class T>
  [[gnu::always_inline]] constexpr T operator()(T g, T x) const {
    const T slope = x * static_cast<T>(1.0 / 3) + static_cast<T>(0.5);
    return g * choose(x <= -3, T{0}, choose(x >= 3, T{1}, slope));
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
    case Activation::silu:
      return f(Silu<B>{}, SiluGradient<B>{});
    case Activation::hardswish:
      return f(Hardswish{}, HardswishGradient{});
    case Activation::hardsigmoid:
      return f(Hardsigmoid{}, HardsigmoidGradient{});
    case Activation::relu:
      break;
  }
  expect(activation == Activation::relu);
  return f(Relu{}, ReluGradient{});
}

}  // namespace tandem::detail
