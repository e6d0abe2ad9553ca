// On CUDA the epilogue is fused to cuDNN's convolution where it has such a kernel (on tensor cores: TF32,
// bf16), else it is a kernel of its own.
#include "tandem/ops/conv/cudnn_conv.cuh"
#include "tandem/ops/conv/naive_conv.cuh"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/conv/winograd.cuh"

namespace tandem::detail {

template <>
void prepacked_conv2d_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                            const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue,
                                            StreamView stream) {
  if (is_winograd_profitable_on_cuda(plan))
    return winograd_conv2d(plan, y, x, conv.weight.bytes(), epilogue, stream);
  const std::byte* const weight = conv.weight.bytes();
  if (cudnn_conv2d(plan, y, x, weight, epilogue, stream)) return;
  if (!cudnn_conv2d(plan, y, x, weight, {}, stream)) naive_conv2d(plan, y, x, weight, nullptr, stream);
  if (epilogue.bias || epilogue.residual || epilogue.relu) naive_epilogue(plan, y, epilogue, true, stream);
}

}  // namespace tandem::detail
