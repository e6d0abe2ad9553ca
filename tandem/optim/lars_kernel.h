// The rates of LARS (lars.h): norms of weights and gradients in two stages, chunks and then slots, each in a
// fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/optim/fused_update.h"

namespace tandem::detail {

struct LarsWorkspace {
  double trust_coefficient;
  Tensor is_adapted;       // (slots) u8: rank 2 or more
  Tensor first_chunk;      // (slots + 1) i64
  Tensor square_sums;      // (chunks, 2) f64: of the weights and of the gradients
  Tensor hyperparameters;  // StepHyperparameters of each slot
};

// The hyperparameters of a slot from those of the step and the sums of squares of its weights and gradients.
template <class T>
constexpr StepHyperparameters<T> adapted(StepHyperparameters<T> values, double trust_coefficient,
                                         double weight_square, double gradient_square) {
  const double weight_norm = std::sqrt(weight_square);
  const double sum = std::sqrt(gradient_square) + static_cast<double>(values.decay) * weight_norm;
  if (weight_norm > 0 && sum > 0)
    values.rate = static_cast<T>(static_cast<double>(values.rate) * (trust_coefficient * weight_norm / sum));
  return values;
}

// Fills workspace.hyperparameters from those of the step. Those of slots without a gradient are undefined.
template <Backend B>
void lars_rates_kernel(DType dtype, const UpdateTable& table, const LarsWorkspace& workspace,
                       std::span<const std::byte* const> gradients, const std::byte* hyperparameters,
                       StreamView stream);

}  // namespace tandem::detail
