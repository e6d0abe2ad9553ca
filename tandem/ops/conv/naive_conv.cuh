// Direct convolution, one thread per result: for f64, which exists for checks, and for what cuDNN has no
// kernel for.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

void naive_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const std::byte* bias, StreamView stream);
void naive_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream);
void naive_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream);

// y = activation(y + bias + residual) in place. The bias has y's dtype or, with `wide_bias`, f32 for y in
// bf16.
void naive_epilogue(const Conv2dPlan& plan, std::byte* y, const Conv2dEpilogue& epilogue, bool wide_bias,
                    StreamView stream);

}  // namespace tandem::detail
