// One call of a vendor library's convolution: which product of a convolution it is, of which sizes, and what
// is fused to it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

enum class ConvPass { forward, input_gradient, weight_gradient };

// Operands: x, weight → y in a forward pass; dy, weight → dx and x, dy → dweight in the gradients.
struct ConvGraph {
  int device = 0;
  Conv2dPlan plan;
  ConvPass pass = ConvPass::forward;
  // Fused to a forward pass. A bias in f32 is added before the residual. A bias in bf16 is added after it:
  // only so cuDNN uses the kernels that it compiles at run time, which are faster by a quarter.
  std::optional<DType> bias;  // its dtype
  bool residual = false;
  bool relu = false;

  friend bool operator==(const ConvGraph&, const ConvGraph&) = default;
};

struct ConvGraphHash {
  std::size_t operator()(const ConvGraph& graph) const;
};

// "bias residual relu"; empty where nothing is fused. A bias in f32 is "f32-bias".
std::string fused_name(const ConvGraph& graph);

}  // namespace tandem::detail
