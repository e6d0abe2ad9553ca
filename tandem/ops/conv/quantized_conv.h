// Convolution of 8-bit images with constant 8-bit weights, for inference: u8 · s8 in exact s32
// sums, then scale, bias, residual and activation in f32, and rounding to 8 bits again. An image is scale ·
// (stored − zero) with one scale and zero; a weight is scale · (stored − 128) with one scale per filter. No
// gradients.
#pragma once

#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

inline constexpr std::uint8_t stored_weight_zero = 128;  // 1 to 255 are stored: −127 to 127

struct QuantizedWeight {
  Tensor stored;  // u8, of the shape of the weight
  Tensor scale;   // f32 (out), positive
};
// Of f32 (out, kernel y, kernel x, channels): the largest magnitude of a filter becomes 127.
QuantizedWeight quantize_weight(const Tensor& weight);
Tensor dequantize_weight(const Tensor& stored, const Tensor& scale);  // f32

struct QuantizedConv2d {
  Conv2dOptions options;
  Shape weight_shape;
  Tensor packed;       // as the algorithm needs it; on CUDA an empty handle where only plain kernels work
  Tensor plain = {};   // on CUDA: s8 in the order of the shape
  Tensor scale, bias;  // f32 (out): of the sums
  Quantization input, result;
  float max_sum = 0, max_scale = 0, max_bias = 0;  // magnitudes that no sum, scale and bias exceeds
};

// `bias` is f32 (out); `options` are without groups; the convolution is for the device of the weight. Throws
// Error for other dtypes and shapes.
QuantizedConv2d prepack_quantized_conv2d(const QuantizedWeight& weight, const Tensor& bias,
                                         const Conv2dOptions& options, Quantization input,
                                         Quantization result);

// A residual, u8 too, has values of its own and the shape of the result.
struct QuantizedResidual {
  Tensor stored = {};
  Quantization values = {};
};
// u8 images.
Tensor quantized_conv2d(const QuantizedConv2d& conv, const Tensor& x, FusedActivation activation,
                        const QuantizedResidual& residual = {});

// On the CPU the first convolution reads images with whole groups of channels: on aarch64 two pixels are
// eight bytes, which products read faster there.
#if defined(__aarch64__)
inline constexpr std::int64_t channel_group = 4;
#else
inline constexpr std::int64_t channel_group = 1;
#endif
// With weights of zero for channels up to a multiple of channel_group; on CUDA the weight itself.
QuantizedWeight with_whole_groups(const QuantizedWeight& weight);

// quantized_max_pool2d(quantized_conv2d(conv, x)) with ReLU, of f32 or bf16 images that are first rounded to
// `conv.input`. The weight is in whole groups.
Tensor quantized_stem(const QuantizedConv2d& conv, const Tensor& x, YX pool_kernel,
                      const Window& pool_window);

}  // namespace tandem::detail
