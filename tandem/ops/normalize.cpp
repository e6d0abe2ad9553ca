#include "tandem/ops/normalize.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/normalize_kernel.h"

namespace tandem::detail {
namespace {

constexpr std::int64_t grain = 1 << 14;

template <int channels, class T>
void normalize_pixels(std::int64_t pixels, const ChannelAffine& affine, T* out, const std::uint8_t* images) {
  parallel_for(pixels, grain, [&](std::int64_t begin, std::int64_t end) {
    float scale[channels], shift[channels];
    for (int c = 0; c < channels; ++c) scale[c] = affine.scale[c], shift[c] = affine.shift[c];
    const std::uint8_t* from = images + begin * channels;
    T* to = out + begin * channels;
    for (std::int64_t i = begin; i < end; ++i, from += channels, to += channels)
      for (int c = 0; c < channels; ++c)
        to[c] = convert<T>(static_cast<float>(from[c]) * scale[c] + shift[c]);
  });
}

}  // namespace

template <>
void normalize_kernel<Backend::cpu>(DType dtype, std::int64_t pixels, int channels,
                                    const ChannelAffine& affine, std::byte* out, const std::uint8_t* images,
                                    StreamView) {
  on_dtype(TypeList<float, BFloat16>{}, dtype, "normalize_images", [&]<class T>() {
    auto* const to = reinterpret_cast<T*>(out);
    switch (channels) {
      case 1:
        return normalize_pixels<1>(pixels, affine, to, images);
      case 2:
        return normalize_pixels<2>(pixels, affine, to, images);
      case 3:
        return normalize_pixels<3>(pixels, affine, to, images);
      default:
        return normalize_pixels<4>(pixels, affine, to, images);
    }
  });
}

}  // namespace tandem::detail

namespace tandem {

Tensor normalize_images(const Tensor& images, const PixelNorm& norm, DType dtype) {
  const Device device = common_device("normalize_images", {&images});
  check(images.dtype() == DType::u8 && images.rank() == 4 && images.size(3) <= max_image_channels,
        "[normalize_images] expected u8 (n, height, width, channels of at most {}), got {} {}",
        max_image_channels, name_of(images.dtype()), images.shape());
  detail::ChannelAffine affine;
  for (int c = 0; c < max_image_channels; ++c) {
    check(norm.stddev[c] > 0, "[normalize_images] expected a standard deviation above 0, got {}",
          norm.stddev[c]);
    affine.scale[c] = 1 / (255 * norm.stddev[c]);
    affine.shift[c] = -norm.mean[c] / norm.stddev[c];
  }
  const Tensor dense = images.contiguous();
  Tensor out = Tensor::empty(images.shape(), dtype, device);
  if (out.numel() == 0) return out;
  const std::int64_t channels = images.size(3);
  on_backend(device, "normalize_images", [&]<Backend B>() {
    detail::normalize_kernel<B>(dtype, out.numel() / channels, static_cast<int>(channels), affine,
                                out.bytes(), dense.data<std::uint8_t>(), current_stream(device));
  });
  return out;
}

}  // namespace tandem
