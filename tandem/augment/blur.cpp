// Row by row: the products of one weight with a row of pixels are added to a row of sums. Rows are padded
// with zeros, so that loops run over whole groups of values, which compilers vectorize.
#include "tandem/augment/blur.h"

#include <algorithm>
#include <cstring>

#include "tandem/augment/arguments.h"
#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

constexpr std::int64_t group = 16;

// An image whose rows begin with `margin` zeros and end with at least as many.
struct PaddedImage {
  const std::uint8_t* bytes;
  int height, channels;
  std::int64_t margin, stride;
  std::int64_t values;  // per row, a multiple of `group`
};

[[gnu::always_inline]] inline void add_product(const std::uint8_t* __restrict row, std::int64_t count,
                                               std::int32_t weight, std::int32_t* __restrict sums) {
  for (std::int64_t first = 0; first < count; first += group)
    for (std::int64_t i = first; i < first + group; ++i) sums[i] += weight * row[i];
}

// The correlation of output row y with the kernel, or with the transposed one.
[[gnu::always_inline]] inline void correlate_row(const BlurKernel& kernel, bool transposed,
                                                 const PaddedImage& image, int y, std::int32_t* sums) {
  const int height = transposed ? kernel.width : kernel.height;
  const int width = transposed ? kernel.height : kernel.width;
  std::fill(sums, sums + image.values, 0);
  for (int i = 0; i < height; ++i) {
    const int row = y + i - height / 2;
    if (row < 0 || row >= image.height) continue;
    const std::uint8_t* const from = image.bytes + row * image.stride + image.margin;
    for (int j = 0; j < width; ++j) {
      const std::int32_t weight = kernel.weights[transposed ? j * kernel.width + i : i * kernel.width + j];
      if (weight != 0) add_product(from + (j - width / 2) * image.channels, image.values, weight, sums);
    }
  }
}

[[gnu::always_inline]] inline void to_levels(const std::int32_t* __restrict across,
                                             const std::int32_t* __restrict down, std::int64_t count,
                                             bool gradient, double divisor, std::uint8_t* __restrict levels) {
  for (std::int64_t first = 0; first < count; first += group)
    for (std::int64_t i = first; i < first + group; ++i)
      levels[i] = static_cast<std::uint8_t>(blurred_level(across[i], down[i], gradient, divisor));
}

}  // namespace

void blur_image(const BlurKernel& kernel, const ImageSize& size, const std::uint8_t* in, std::uint8_t* out,
                std::vector<std::int32_t>& words) {
  const std::int64_t row = std::int64_t{size.width} * size.channels;
  PaddedImage image{.bytes = nullptr,
                    .height = size.height,
                    .channels = size.channels,
                    .margin = std::int64_t{max_blur_side / 2} * size.channels,
                    .stride = 0,
                    .values = (row + group - 1) / group * group};
  image.stride = image.values + 2 * image.margin;
  const std::int64_t bytes = size.height * image.stride;
  words.assign(static_cast<std::size_t>(2 * image.values + (bytes + image.values + 3) / 4), 0);
  std::int32_t* const across = words.data();
  std::int32_t* const down = across + image.values;
  auto* const padded = reinterpret_cast<std::uint8_t*>(down + image.values);
  std::uint8_t* const levels = padded + bytes;
  for (int y = 0; y < size.height; ++y)
    std::memcpy(padded + y * image.stride + image.margin, in + y * row, static_cast<std::size_t>(row));
  image.bytes = padded;
  const double divisor = blur_divisor(kernel);
  with_simd([=]<std::size_t>() __attribute__((always_inline)) {
    const BlurKernel local = kernel;  // a local copy cannot be aliased by the stores
    for (int y = 0; y < size.height; ++y) {
      correlate_row(local, false, image, y, across);
      if (local.gradient) {
        correlate_row(local, true, image, y, down);
        to_levels(across, down, image.values, true, divisor, levels);
      } else {
        to_levels(across, down, image.values, false, divisor, levels);
      }
      std::memcpy(out + y * row, levels, static_cast<std::size_t>(row));
    }
  });
}

}  // namespace tandem::detail
