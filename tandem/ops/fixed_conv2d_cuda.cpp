// On CUDA the epilogue is fused to cuDNN's convolution where it has such a kernel (on tensor cores: TF32,
// bf16), else a pass of its own.
#include "tandem/ops/conv2d_graph.cuh"
#include "tandem/ops/conv2d_plain.cuh"
#include "tandem/ops/fixed_conv2d.h"
#include "tandem/ops/winograd.cuh"

namespace tandem {

template <>
void fixed_conv2d_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                        const FixedConv2d& fixed, const Conv2dEpilogue& epilogue,
                                        StreamView stream) {
  if (winograd_pays_on_cuda(plan)) return winograd_conv2d(plan, y, x, fixed.weight.bytes(), epilogue, stream);
  const ConvRequest fused{.plan = plan,
                          .bias = epilogue.bias != nullptr,
                          .residual = epilogue.residual != nullptr,
                          .relu = epilogue.relu};
  const std::byte* const weight = fixed.weight.bytes();
  if (run_convolution(
          fused, {.x = x, .weight = weight, .y = y, .bias = epilogue.bias, .residual = epilogue.residual},
          stream))
    return;
  if (!run_convolution({.plan = plan}, {.x = x, .weight = weight, .y = y}, stream))
    convolve_plain(plan, y, x, weight, nullptr, stream);
  if (fused.bias || fused.residual || fused.relu) finish_plain(plan, y, epilogue, true, stream);
}

}  // namespace tandem
