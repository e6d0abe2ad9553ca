// What a network in 8-bit integers (quantized_conv.h) computes on images beside convolutions: rounding to
// levels, max pooling and the mean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/index_range.h"
#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/conv/pool_kernel.h"

namespace tandem::detail {

// f32 or bf16 (n, height, width, channels) → u8: to nearest, ties to even, clamped; NaN becomes 0. Channels
// that are missing are the stored zero.
Tensor quantize_images(const Tensor& x, Quantization values, std::int64_t channels);

// The maximum of each window of u8 images (n, height, width, channels); padding never wins.
Tensor quantized_max_pool2d(const Tensor& x, YX kernel, const Window& window);
// The mean over height and width: u8 (n, height, width, channels) → f32 (n, channels).
Tensor quantized_image_mean(const Tensor& x, Quantization values);

// Throws Error unless x is u8 and of rank 4.
void check_quantized_images(const char* op, const Tensor& x);

// Images in a floating dtype.
struct FloatingImages {
  const std::byte* data;
  DType dtype;  // f32 or bf16
  std::int64_t pixels, channels;
};
void check_floating_images(const char* op, const Tensor& x);
FloatingImages floating_images(const Tensor& contiguous);
// `channels` of every pixel are written, at least as many as there are.
template <Backend B>
void quantize_images_kernel(const FloatingImages& images, Quantization values, std::int64_t channels,
                            std::uint8_t* y, StreamView stream);

// Parts of quantize_images_kernel(), quantized_max_pool2d_kernel() and quantized_image_mean_kernel() on the
// CPU, which do not throw. Pixels and lines are those of all images, one image after another.
void quantize_pixels(const FloatingImages& images, Quantization values, std::int64_t channels,
                     std::uint8_t* y, IndexRange pixels);
// Of the result; `scratch` has in.x · channels bytes.
void max_pool_lines(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x, IndexRange lines,
                    std::uint8_t* scratch);
// Parts are groups of channels of an image.
inline constexpr std::int64_t mean_channels = 64;
void mean_parts(const PoolPlan& plan, float* means, const std::uint8_t* x, Quantization values,
                IndexRange parts);

// Throws Error for windows that the op does not have. `in` is the size of the images.
PoolPlan quantized_pool_plan(std::int64_t images, YX in, std::int64_t channels, YX kernel,
                             const Window& window);

template <Backend B>
void quantized_max_pool2d_kernel(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x,
                                 StreamView stream);

template <Backend B>
void quantized_image_mean_kernel(const PoolPlan& plan, float* y, const std::uint8_t* x, Quantization values,
                                 StreamView stream);

}  // namespace tandem::detail
