// Arithmetic with broadcasting, as NumPy does it: operands of one dtype and device, sizes of 1 repeat.
// Gradients flow to both operands. Integers wrap around. Integer division by zero is an Error on the CPU and
// undefined on CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/device/stream.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);

// The same with one number for an operand, converted to the tensor's dtype.
Tensor add(const Tensor& a, double b);
Tensor multiply(const Tensor& a, double b);
Tensor negate(const Tensor& a);

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return subtract(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return multiply(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return divide(a, b);
}

enum class Arithmetic { add, subtract, multiply, divide };

// Operands in the layout's order: out, a, b.
template <Backend B>
void arithmetic_kernel(Arithmetic operation, DType dtype, const Layout<3>& layout, std::byte* out,
                       const std::byte* a, const std::byte* b, StreamView stream);

// Integers wrap around: what would overflow is computed without a sign, where that is defined.
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
      return b == -1 ? Subtract{}(T{0}, a) : static_cast<T>(a / b);  // the least number has no negative
    else
      return static_cast<T>(a / b);
  }
};

// f(functor) for the named operation.
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

}  // namespace tandem
