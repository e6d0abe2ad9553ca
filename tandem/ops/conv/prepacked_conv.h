// Convolution with constant weights, for inference and for frozen layers. The weights are packed once into
// the layout the fastest algorithm needs (on the CPU, the Winograd transform for 3×3 windows), and bias,
// residual and activation are fused. No gradients.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

struct BlockConv;

struct PrepackedConv2d {
  Conv2dOptions options;
  Shape weight_shape;
  DType dtype;       // of the images
  Tensor weight;     // as the algorithm needs it: packed on the CPU
  Tensor bias;       // f32 (f64 for f64), or an empty handle
  Tensor bf16_bias;  // on CUDA, for bf16 images
  // On CUDA, for bf16 images with few channels: the weight in space-to-depth form (space_to_depth.cuh).
  Tensor space_to_depth_weight;
  // On CUDA: used before, so that no kernel that may still be running writes the weight.
  bool settled = false;
};

// `dtype` is the dtype of the images. weight is as for conv2d(); bias is (out) or an empty handle.
PrepackedConv2d prepack_conv2d(const Tensor& weight, const Tensor& bias, const Conv2dOptions& options,
                               DType dtype);

// activation(conv2d(x) + bias + residual); residual has the shape of the result or is an empty handle.
Tensor prepacked_conv2d(const PrepackedConv2d& conv, const Tensor& x, const Tensor& residual = {},
                        FusedActivation activation = FusedActivation::none);

// A plan for the smallest images: the layout of a packed weight does not depend on the image size.
Conv2dPlan weight_plan(const Tensor& weight, const Conv2dOptions& options, DType dtype);

// Packs conv.weight, which is contiguous and of conv.dtype, in the way the backend needs it.
template <Backend B>
void prepack_weight(PrepackedConv2d& conv);

// On the CPU, where uses_block_conv(plan).
BlockConv prepacked_block_conv(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                               const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue);

template <Backend B>
void prepacked_conv2d_kernel(const Conv2dPlan& plan, std::byte* y, const std::byte* x,
                             const PrepackedConv2d& conv, const Conv2dEpilogue& epilogue, StreamView stream);

}  // namespace tandem::detail
