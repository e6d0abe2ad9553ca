// Kernel of cross_entropy (cross_entropy.h).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

struct CrossEntropyTerms {
  std::int64_t rows, classes;
  double label_smoothing, focal_gamma;
  std::int64_t batch_rows;  // the mean is over this many rows; more than `rows` if other ranks have some
  // In the compute type, or null: (classes), and what replaces batch_rows.
  const std::byte *class_weights, *total_weight;
};

// What the focal loss multiplies the cross-entropy of a row by, and what it multiplies its gradient by.
template <class C>
struct FocalFactors {
  C loss = 1, gradient = 1;
};
template <class C>
constexpr FocalFactors<C> focal_factors(C cross_entropy, C gamma) {
  if (gamma == 0) return {};
  const C rest = -std::expm1(-cross_entropy), probability = std::exp(-cross_entropy);
  if (rest <= 0) return {0, 0};
  const C factor = std::pow(rest, gamma);
  // The second term is γ p (1 − p)^(γ − 1) · cross_entropy, and 0 for a probability of 0.
  return {factor, probability == 0 ? factor : factor + gamma * (factor / rest) * probability * cross_entropy};
}

// Writes each row's part of the mean loss to `losses`, in the compute type. `gradient` may be null. All
// operands are dense.
template <Backend B>
void cross_entropy_kernel(DType dtype, DType label_dtype, const CrossEntropyTerms& terms, std::byte* losses,
                          std::byte* gradient, const std::byte* logits, const std::byte* labels,
                          StreamView stream);

}  // namespace tandem::detail
