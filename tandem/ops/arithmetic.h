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

/// a + b for a scalar b, which is converted to the dtype of a.
Tensor add(const Tensor& a, double b);
/// a · b for a scalar b, which is converted to the dtype of a.
Tensor multiply(const Tensor& a, double b);
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

}  // namespace tandem
