// Convolutions on CUDA: Winograd's where it saves multiplications in f32, else cuDNN where it has a kernel,
// plain ones (conv2d_plain.cuh) for what it lacks, f64 above all.
#include "tandem/device/buffer.h"
#include "tandem/ops/conv2d.h"
#include "tandem/ops/conv2d_graph.cuh"
#include "tandem/ops/conv2d_plain.cuh"
#include "tandem/ops/winograd.cuh"

namespace tandem {

template <>
void conv2d_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                                  const std::byte* weight, const std::byte* bias, StreamView stream) {
  if (winograd_pays_on_cuda(plan)) return winograd_conv2d(plan, y, x, weight, {.bias = bias}, stream);
  if (run_convolution({.plan = plan}, {.x = x, .weight = weight, .y = y}, stream)) {
    if (bias) finish_plain(plan, y, {.bias = bias}, false, stream);
  } else {
    convolve_plain(plan, y, x, weight, bias, stream);
  }
}

template <>
void conv2d_input_gradient_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                                                 const std::byte* weight, StreamView stream) {
  if (winograd_pays_on_cuda(plan)) return winograd_input_gradient(plan, dx, dy, weight, stream);
  const ConvRequest request{.plan = plan, .pass = ConvPass::input_gradient};
  if (!run_convolution(request, {.x = dx, .weight = weight, .y = dy}, stream))
    input_gradient_plain(plan, dx, dy, weight, stream);
}

template <>
void conv2d_weight_gradient_kernel<Backend::cuda>(const Conv2dPlan& plan, std::byte* dweight,
                                                  const std::byte* dy, const std::byte* x,
                                                  StreamView stream) {
  if (winograd_pays_on_cuda(plan)) return winograd_weight_gradient(plan, dweight, dy, x, stream);
  const ConvRequest request{.plan = plan, .pass = ConvPass::weight_gradient};
  if (!run_convolution(request, {.x = x, .weight = dweight, .y = dy}, stream))
    weight_gradient_plain(plan, dweight, dy, x, stream);
}

}  // namespace tandem
