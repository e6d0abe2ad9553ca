// Images of bytes as a network wants them: (pixel / 255 − mean) / deviation, channel by channel. The last
// step of every pipeline, done on the device where the network is, so that a quarter of the bytes travels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

inline constexpr int most_image_channels = 4;

// As PyTorch's Normalize takes them; of channels that an image does not have they are not used.
struct PixelNorm {
  float mean[most_image_channels] = {0, 0, 0, 0};
  float deviation[most_image_channels] = {1, 1, 1, 1};

  friend bool operator==(const PixelNorm&, const PixelNorm&) = default;
};

// What photographs are normalised by since ImageNet.
inline constexpr PixelNorm photo_norm{{0.485f, 0.456f, 0.406f, 0}, {0.229f, 0.224f, 0.225f, 1}};

// u8 (n, height, width, channels) → f32 or bf16 of that shape. No gradient.
Tensor normalize_images(const Tensor& images, const PixelNorm& norm, DType dtype = DType::f32);

// A pixel p becomes p · scale + shift.
struct PixelLine {
  float scale[most_image_channels], shift[most_image_channels];
};

template <Backend B>
void normalize_kernel(DType dtype, std::int64_t pixels, int channels, const PixelLine& line, std::byte* out,
                      const std::uint8_t* images, StreamView stream);

}  // namespace tandem
