// On CUDA the epilogue is fused to depthwise convolutions and to cuDNN's where it has such a kernel (on
// tensor cores: TF32, bf16; no activation but ReLU), else it is a kernel of its own.
#include "tandem/device/buffer.h"
#include "tandem/ops/conv/cudnn_conv.cuh"
#include "tandem/ops/conv/depthwise.cuh"
#include "tandem/ops/conv/naive_conv.cuh"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/conv/small_conv.cuh"
#include "tandem/ops/conv/space_to_depth.cuh"
#include "tandem/ops/conv/winograd.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {

template <>
void prepack_weight<Backend::cuda>(PrepackedConv2d& conv) {
  if (conv.dtype != DType::bf16 || conv.weight.numel() == 0) return;
  const Conv2dPlan plan = weight_plan(conv.weight, conv.options, conv.dtype);
  if (!is_space_to_depth_profitable(plan)) return;
  const SpaceToDepth mapping = make_space_to_depth(plan);
  conv.space_to_depth_weight =
      Tensor::empty({sizes_of(mapping.plan).weight}, conv.dtype, conv.weight.device());
  space_to_depth_weight(mapping, conv.space_to_depth_weight.bytes(), conv.weight.bytes(),
                        current_stream(conv.weight.device()));
}

namespace {

// False, without a result, where cuDNN has no kernel.
bool space_to_depth_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                           const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue, StreamView stream) {
  const SpaceToDepth mapping = make_space_to_depth(plan);
  const std::byte* const weight = conv.space_to_depth_weight.bytes();
  const Buffer images(static_cast<std::size_t>(sizes_of(mapping.plan).x) * size_of(plan.dtype), stream);
  space_to_depth_images(mapping, images.data(), x, stream);
  if (!is_small_conv_profitable(mapping.plan, stream.device))
    return cudnn_conv2d(mapping.plan, y, images.data(), weight, epilogue, stream);
  small_conv2d(mapping.plan, y, images.data(), weight, epilogue, conv.settled, stream);
  return true;
}

}  // namespace

template <>
void prepacked_conv2d_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                            const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue,
                                            StreamView stream) {
  const std::byte* const weight = conv.weight.bytes();
  if (is_depthwise_on_cuda(plan)) return depthwise_conv2d(plan, y, x, weight, epilogue, stream);
  const bool fusible = !needs_argument(epilogue.activation);
  if (fusible && is_small_conv_profitable(plan, stream.device))
    return small_conv2d(plan, y, x, weight, epilogue, conv.settled, stream);
  if (fusible && is_winograd_profitable_on_cuda(plan))
    return winograd_conv2d(plan, y, x, weight, epilogue, stream);
  if (fusible && conv.space_to_depth_weight.defined() &&
      space_to_depth_conv2d(plan, y, x, conv, epilogue, stream))
    return;
  if (fusible && cudnn_conv2d(plan, y, x, weight, epilogue, stream)) return;
  if (is_winograd_profitable_on_cuda(plan))
    winograd_conv2d(plan, y, x, weight, {}, stream);
  else if (!cudnn_conv2d(plan, y, x, weight, {}, stream))
    naive_conv2d(plan, y, x, weight, nullptr, stream);
  if (epilogue.bias || epilogue.residual || epilogue.activation != FusedActivation::none)
    naive_epilogue(plan, y, epilogue, true, stream);
}

}  // namespace tandem::detail
