// Kernels and functors of the unary operations (unary.h).
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "tandem/core/on_dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/arithmetic_kernel.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

enum class Unary { exp, log, sqrt, square, absolute, sign };

constexpr const char* name_of(Unary function) {
  constexpr const char* names[] = {"exp", "log", "sqrt", "square", "absolute", "sign"};
  return names[static_cast<int>(function)];
}

// Layout operands: out, x.
template <Backend B>
void unary_kernel(Unary function, DType dtype, const Layout<2>& layout, std::byte* out, const std::byte* x,
                  StreamView stream);

// The gradient of x, given the gradient g of the result and the saved tensor: the result of exp and sqrt, x
// for the others. Layout operands: out, g, saved.
template <Backend B>
void unary_gradient_kernel(Unary function, DType dtype, const Layout<3>& layout, std::byte* out,
                           const std::byte* g, const std::byte* saved, StreamView stream);

struct Square {
  template <class T>
  constexpr T operator()(T x) const {
    return Multiply{}(x, x);
  }
};
struct Absolute {
  template <class T>
  constexpr T operator()(T x) const {
    if constexpr (std::floating_point<T>)
      return x < 0 ? -x : x + T{0};  // −0 becomes 0
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? Subtract{}(T{0}, x) : x;
    else
      return x;
  }
};

struct Sign {
  template <class T>
  constexpr T operator()(T x) const {
    if (x > T{0}) return T{1};
    if constexpr (std::is_signed_v<T>)
      if (x < T{0}) return T{-1};
    return x == T{0} ? T{0} : x;  // NaN stays NaN
  }
};

struct ExpGradient {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g * y;
  }
};
struct LogGradient {
  template <class T>
  constexpr T operator()(T g, T x) const {
    return g / x;
  }
};
struct SqrtGradient {
  template <class T>
  constexpr T operator()(T g, T y) const {
    return g / (y + y);
  }
};
struct SquareGradient {
  template <class T>
  constexpr T operator()(T g, T x) const {
    return g * (x + x);
  }
};
struct AbsoluteGradient {
  template <class T>
  constexpr T operator()(T g, T x) const {
    return x > 0 ? g : x < 0 ? -g : x * T{0};  // 0 at 0, NaN at NaN
  }
};

struct SignGradient {
  template <class T>
  constexpr T operator()(T, T) const {
    return T{0};
  }
};

// Calls f with the functor of `function` and its dtypes. Each backend has its own exp, log and sqrt.
template <class Exp, class Log, class Sqrt, class F>
void on_unary(Unary function, F&& f) {
  switch (function) {
    case Unary::exp:
      return f(Exp{}, FloatTypes{});
    case Unary::log:
      return f(Log{}, FloatTypes{});
    case Unary::sqrt:
      return f(Sqrt{}, FloatTypes{});
    case Unary::square:
      return f(Square{}, AllTypes{});
    case Unary::absolute:
      return f(Absolute{}, AllTypes{});
    case Unary::sign:
      return f(Sign{}, AllTypes{});
  }
}

// Calls f with the gradient functor of `function`.
template <class F>
void on_unary_gradient(Unary function, F&& f) {
  switch (function) {
    case Unary::exp:
      return f(ExpGradient{});
    case Unary::log:
      return f(LogGradient{});
    case Unary::sqrt:
      return f(SqrtGradient{});
    case Unary::square:
      return f(SquareGradient{});
    case Unary::absolute:
      return f(AbsoluteGradient{});
    case Unary::sign:
      return f(SignGradient{});
  }
}

}  // namespace tandem::detail
