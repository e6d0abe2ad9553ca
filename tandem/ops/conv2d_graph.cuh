// Convolutions by cuDNN: which work is asked for, and the execution plan that does it. Plans are made once
// for each request and kept. The first plan of cuDNN's own ranking that can be built is taken, never a
// measured one: the same request gives the same bits in every run.
#pragma once

#include "tandem/ops/conv2d.h"

namespace tandem {

enum class ConvPass { forward, input_gradient, weight_gradient };

struct ConvRequest {
  Conv2dPlan plan;
  ConvPass pass = ConvPass::forward;
  // Fused to a forward pass, in this order.
  bool bias = false;  // f32, for each filter
  bool residual = false;
  bool relu = false;
};

// Of a forward pass: x, weight → y; of the gradients: dy, weight → dx and x, dy → dweight.
struct ConvOperands {
  const std::byte *x = nullptr, *weight = nullptr, *y = nullptr;
  const std::byte *bias = nullptr, *residual = nullptr;
};

// A weight's gradient is f32 also for bf16 images; images of few channels are folded on the way
// (conv2d_fold.cuh). False where cuDNN has no kernel for the request; nothing was done then.
bool run_convolution(const ConvRequest& request, const ConvOperands& operands, StreamView stream);

}  // namespace tandem
