// Convolution by its definition: a thread for each result. For f64, which is there for checks, and for
// whatever cuDNN has no kernel for.
#pragma once

#include "tandem/ops/fixed_conv2d.h"

namespace tandem {

void convolve_plain(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                    const std::byte* bias, StreamView stream);
void input_gradient_plain(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy, const std::byte* weight,
                          StreamView stream);
void weight_gradient_plain(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                           const std::byte* x, StreamView stream);

// y = relu(y + bias + residual), where the plan's y has sums in it; bias is of y's dtype or, with
// `wide_bias`, f32 beside bf16.
void finish_plain(const Conv2dPlan& plan, std::byte* y, const Conv2dEpilogue& epilogue, bool wide_bias,
                  StreamView stream);

}  // namespace tandem
