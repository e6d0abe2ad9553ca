// The choice of algorithm on CUDA: own kernels for depthwise convolutions, Winograd where it saves
// multiplications in f32, else cuDNN where it has a kernel, else naive kernels, above all for f64.
#include "tandem/device/buffer.h"
#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/conv/cudnn_conv.cuh"
#include "tandem/ops/conv/depthwise.cuh"
#include "tandem/ops/conv/naive_conv.cuh"
#include "tandem/ops/conv/winograd.cuh"

namespace tandem::detail {

template <>
void conv2d_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                  const std::byte* weight, const std::byte* bias, StreamView stream) {
  if (is_winograd_profitable_on_cuda(plan))
    return winograd_conv2d(plan, y, x, weight, {.bias = bias}, stream);
  if (is_depthwise_on_cuda(plan)) {
    depthwise_conv2d(plan, y, x, weight, {}, stream);
    if (bias) naive_epilogue(plan, y, {.bias = bias}, false, stream);
  } else if (cudnn_conv2d(plan, y, x, weight, {}, stream)) {
    if (bias) naive_epilogue(plan, y, {.bias = bias}, false, stream);
  } else {
    naive_conv2d(plan, y, x, weight, bias, stream);
  }
}

template <>
void conv2d_input_gradient_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                                                 const std::byte* weight, StreamView stream) {
  if (is_winograd_profitable_on_cuda(plan)) return winograd_input_gradient(plan, dx, dy, weight, stream);
  if (is_depthwise_on_cuda(plan)) return depthwise_input_gradient(plan, dx, dy, weight, stream);
  if (!cudnn_input_gradient(plan, dx, dy, weight, stream)) naive_input_gradient(plan, dx, dy, weight, stream);
}

template <>
void conv2d_weight_gradient_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* dweight,
                                                  const std::byte* dy, const std::byte* x,
                                                  StreamView stream) {
  if (is_winograd_profitable_on_cuda(plan)) return winograd_weight_gradient(plan, dweight, dy, x, stream);
  if (is_depthwise_on_cuda(plan)) return depthwise_weight_gradient(plan, dweight, dy, x, stream);
  if (!cudnn_weight_gradient(plan, dweight, dy, x, stream))
    naive_weight_gradient(plan, dweight, dy, x, stream);
}

}  // namespace tandem::detail
