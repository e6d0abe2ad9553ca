// Kernels and functors of the arithmetic operations (arithmetic.h).
#pragma once

#include <cstddef>
#include <type_traits>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

enum class Arithmetic { add, subtract, multiply, divide };

// Layout operands: out, a, b.
template <Backend B>
void arithmetic_kernel(Arithmetic operation, DType dtype, const Layout<3>& layout, std::byte* out,
                       const std::byte* a, const std::byte* b, StreamView stream);

// Integers wrap around: arithmetic that could overflow is done on the unsigned type, where wrapping is
// defined.
template <class T>
using Wrapping = typename std::conditional_t<sizeof(T) >= sizeof(int) && std::is_integral_v<T>,
                                             std::make_unsigned<T>, std::type_identity<T>>::type;

struct Add {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Divide {
  template <class T>
  constexpr T operator()(T a, T b) const {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      return b == -1 ? Subtract{}(T{0}, a) : static_cast<T>(a / b);  // the lowest integer / −1 would overflow
    else
      return static_cast<T>(a / b);
  }
};

// Calls f with the functor of `operation`.
template <class F>
void on_arithmetic(Arithmetic operation, F&& f) {
  switch (operation) {
    case Arithmetic::add:
      return f(Add{});
    case Arithmetic::subtract:
      return f(Subtract{});
    case Arithmetic::multiply:
      return f(Multiply{});
    case Arithmetic::divide:
      return f(Divide{});
  }
}

}  // namespace tandem::detail
