// Conversion of 8-bit images to normalized floats. It is the last step of every input pipeline and runs on
// the device of the model, so that bytes and not floats are copied there.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The maximum number of channels of an image.
inline constexpr int max_image_channels = 4;

/// Mean and standard deviation per channel of pixels scaled to [0, 1], as in torchvision's Normalize. Entries
/// beyond the channels of an image are ignored.
struct PixelNorm {
  float mean[max_image_channels] = {0, 0, 0, 0};    ///< subtracted
  float stddev[max_image_channels] = {1, 1, 1, 1};  ///< divided by; above 0

  /// Exact equality.
  friend bool operator==(const PixelNorm&, const PixelNorm&) = default;
};

/// Mean and standard deviation of ImageNet (RGB), which pretrained models expect.
inline constexpr PixelNorm imagenet_norm{{0.485f, 0.456f, 0.406f, 0}, {0.229f, 0.224f, 0.225f, 1}};

/// (pixel / 255 − mean) / stddev per channel: u8 (n, height, width, channels) → f32 or bf16 of the same
/// shape. No gradient. Throws Error for another dtype or rank, too many channels, or a stddev that is not
/// above 0.
Tensor normalize_images(const Tensor& images, const PixelNorm& norm, DType dtype = DType::f32);

}  // namespace tandem
