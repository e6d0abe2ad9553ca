#include "tandem/ops/normalize.h"

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/elementwise.h"

namespace tandem {
namespace {

constexpr std::int64_t grain = 1 << 14;

template <int channels, class T>
void normalize_pixels(std::int64_t pixels, const PixelLine& line, T* out, const std::uint8_t* images) {
  parallel_for(pixels, grain, [&](std::int64_t begin, std::int64_t end) {
    float scale[channels], shift[channels];
    for (int c = 0; c < channels; ++c) scale[c] = line.scale[c], shift[c] = line.shift[c];
    const std::uint8_t* from = images + begin * channels;
    T* to = out + begin * channels;
    for (std::int64_t i = begin; i < end; ++i, from += channels, to += channels)
      for (int c = 0; c < channels; ++c)
        to[c] = convert<T>(static_cast<float>(from[c]) * scale[c] + shift[c]);
  });
}

}  // namespace

template <>
void normalize_kernel<Backend::cpu>(DType dtype, std::int64_t pixels, int channels, const PixelLine& line,
                                    std::byte* out, const std::uint8_t* images, StreamView) {
  on_dtype(TypeList<float, BFloat16>{}, dtype, "normalize_images", [&]<class T>() {
    auto* const to = reinterpret_cast<T*>(out);
    switch (channels) {
      case 1:
        return normalize_pixels<1>(pixels, line, to, images);
      case 2:
        return normalize_pixels<2>(pixels, line, to, images);
      case 3:
        return normalize_pixels<3>(pixels, line, to, images);
      default:
        return normalize_pixels<4>(pixels, line, to, images);
    }
  });
}

Tensor normalize_images(const Tensor& images, const PixelNorm& norm, DType dtype) {
  const Device device = common_device("normalize_images", {&images});
  check(images.dtype() == DType::u8 && images.rank() == 4 && images.size(3) <= most_image_channels,
        "[normalize_images] expected u8 (n, height, width, channels of at most {}), got {} {}",
        most_image_channels, name_of(images.dtype()), images.shape().to_string());
  PixelLine line;
  for (int c = 0; c < most_image_channels; ++c) {
    check(norm.deviation[c] > 0, "[normalize_images] expected a deviation above 0, got {}",
          norm.deviation[c]);
    line.scale[c] = 1 / (255 * norm.deviation[c]);
    line.shift[c] = -norm.mean[c] / norm.deviation[c];
  }
  const Tensor dense = images.contiguous();
  Tensor out = Tensor::empty(images.shape(), dtype, device);
  if (out.numel() == 0) return out;
  const std::int64_t channels = images.size(3);
  on_backend(device, "normalize_images", [&]<Backend B>() {
    normalize_kernel<B>(dtype, out.numel() / channels, static_cast<int>(channels), line, out.bytes(),
                        dense.data<std::uint8_t>(), current_stream(device));
  });
  return out;
}

}  // namespace tandem
