// Element-wise arithmetic with NumPy broadcasting. Gradients flow to both operands. Integers wrap around on
// overflow.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// a + b. Throws Error unless both have the same dtype and device and their shapes broadcast; so do the
/// others.
Tensor add(const Tensor& a, const Tensor& b);
/// a − b.
Tensor subtract(const Tensor& a, const Tensor& b);
/// a · b.
Tensor multiply(const Tensor& a, const Tensor& b);
/// a / b; integers are truncated toward zero. Integer division by zero throws Error on the CPU and gives
/// unspecified values on CUDA.
Tensor divide(const Tensor& a, const Tensor& b);

/// The same with a scalar, which is converted to the dtype of the tensor. Throws Error for a scalar with a
/// fraction and a tensor of integers: cast() it first.
Tensor add(const Tensor& a, double b);
Tensor subtract(const Tensor& a, double b);
Tensor subtract(double a, const Tensor& b);
Tensor multiply(const Tensor& a, double b);
Tensor divide(const Tensor& a, double b);
Tensor divide(double a, const Tensor& b);
/// −a.
Tensor negate(const Tensor& a);

/// add(a, b).
inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
/// subtract(a, b).
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return subtract(a, b);
}
/// multiply(a, b).
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return multiply(a, b);
}
/// divide(a, b).
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return divide(a, b);
}

/// Operators with a scalar: A * 2, 1 - A.
inline Tensor operator+(const Tensor& a, double b) {
  return add(a, b);
}
inline Tensor operator+(double a, const Tensor& b) {
  return add(b, a);
}
inline Tensor operator-(const Tensor& a, double b) {
  return subtract(a, b);
}
inline Tensor operator-(double a, const Tensor& b) {
  return subtract(a, b);
}
inline Tensor operator*(const Tensor& a, double b) {
  return multiply(a, b);
}
inline Tensor operator*(double a, const Tensor& b) {
  return multiply(b, a);
}
inline Tensor operator/(const Tensor& a, double b) {
  return divide(a, b);
}
inline Tensor operator/(double a, const Tensor& b) {
  return divide(a, b);
}
/// negate(a).
inline Tensor operator-(const Tensor& a) {
  return negate(a);
}

}  // namespace tandem
