// The factor of GradientClip (clip_gradients.h): the norm in two stages, chunks and then their sum, each in a
// fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "tandem/optim/fused_update.h"

namespace tandem::detail {

struct ClipWorkspace {
  UpdateTable table;                        // whose weights receive the clipped gradients
  std::vector<Tensor> clipped;              // its memory
  std::vector<const std::byte*> gradients;  // addresses
  Tensor square_sums;                       // (chunks) f64
  Tensor norm;                              // [] f64
  Tensor hyperparameters;                   // StepHyperparameters, of which `rate` is used
};

// PyTorch's formula. A norm that is not finite gives a factor of 0 or NaN, and gradients that are not finite.
constexpr double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

// Writes workspace.norm and the factor, as the rate of workspace.hyperparameters.
template <Backend B>
void clip_factor_kernel(DType dtype, const ClipWorkspace& workspace, double max_norm, StreamView stream);

}  // namespace tandem::detail
