// Arithmetic with broadcasting, as NumPy does it: operands of one dtype and device, sizes of 1 repeat.
// Gradients flow to both operands. Integer division by zero is an Error on the CPU and undefined on CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

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

struct Add {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Subtract {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Multiply {
  template <class T>
  constexpr T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};
struct Divide {
  template <class T>
  constexpr T operator()(T a, T b) const {
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
