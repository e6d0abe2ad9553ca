#include "tandem/augment/reference.h"

#include <algorithm>
#include <cmath>

#include "tandem/augment/arguments.h"
#include "tandem/augment/spline.h"
#include "tandem/core/check.h"

namespace tandem {
namespace {

void check_image(const char* op, const FloatImage& image) {
  const ImageSize& size = image.size;
  check(size.height >= 0 && size.width >= 0 && size.channels >= 0 &&
            static_cast<std::int64_t>(image.values.size()) == size.bytes(),
        "[{}] expected an image of {}×{}×{} values, got {}", op, size.height, size.width, size.channels,
        image.values.size());
}

// out[y][x] = in[y + dy][x + dx(y)]; outside is 0.
template <class Columns>
FloatImage moved(const FloatImage& image, std::int64_t dy, const Columns& dx) {
  const auto [height, width, channels] = image.size;
  FloatImage out{image.size, std::vector<float>(image.values.size())};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const double row = static_cast<double>(y + dy), column = static_cast<double>(x) + dx(y);
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      const std::int64_t from = (y + dy) * width + static_cast<std::int64_t>(column);
      std::copy_n(image.values.begin() + from * channels, channels,
                  out.values.begin() + (y * width + x) * channels);
    }
  return out;
}

double at_nearest(const std::vector<double>& values, const ImageSize& size, double row, double column,
                  int channel) {
  const auto y = static_cast<std::int64_t>(std::floor(row + 0.5));
  const auto x = static_cast<std::int64_t>(std::floor(column + 0.5));
  return values[(y * size.width + x) * size.channels + channel];
}

double at_linear(const std::vector<double>& values, const ImageSize& size, double row, double column,
                 int channel) {
  const auto y = static_cast<std::int64_t>(row), x = static_cast<std::int64_t>(column);
  const std::int64_t below = std::min<std::int64_t>(y + 1, size.height - 1);
  const std::int64_t next = std::min<std::int64_t>(x + 1, size.width - 1);
  const double down = row - static_cast<double>(y), right = column - static_cast<double>(x);
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return values[(i * size.width + j) * size.channels + channel];
  };
  return (1 - down) * ((1 - right) * at(y, x) + right * at(y, next)) +
         down * ((1 - right) * at(below, x) + right * at(below, next));
}

double at_cubic(const std::vector<double>& coefficients, const ImageSize& size, double row, double column,
                int channel) {
  return detail::spline_value(coefficients.data() + channel, size.width, size.channels,
                              detail::spline_taps<double>(column, size.width),
                              detail::spline_taps<double>(row, size.height));
}

}  // namespace

FloatImage rotate(const FloatImage& image, double degrees, Interpolation interpolation) {
  check_image("rotate", image);
  check(std::abs(degrees) <= 36000, "[rotate] expected degrees from -36000 to 36000, got {}", degrees);
  const auto [height, width, channels] = image.size;
  const auto [sine, cosine] = detail::sine_cosine(degrees);
  const double cy = (height - 1) / 2.0, cx = (width - 1) / 2.0;
  std::vector<double> values(image.values.begin(), image.values.end());
  if (interpolation == Interpolation::cubic) detail::spline_coefficients(values.data(), image.size);
  const auto at = interpolation == Interpolation::nearest  ? at_nearest
                  : interpolation == Interpolation::linear ? at_linear
                                                           : at_cubic;
  FloatImage out{image.size, std::vector<float>(image.values.size())};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double row = cosine * (y - cy) + sine * (x - cx) + cy;
      const double column = cosine * (x - cx) - sine * (y - cy) + cx;
      if (row < 0 || row > height - 1 || column < 0 || column > width - 1) continue;
      for (int c = 0; c < channels; ++c)
        out.values[(std::int64_t{y} * width + x) * channels + c] =
            static_cast<float>(at(values, image.size, row, column, c));
    }
  return out;
}

FloatImage shift(const FloatImage& image, int dx, int dy) {
  check_image("shift", image);
  return moved(image, dy, [=](std::int64_t) { return static_cast<double>(dx); });
}

FloatImage skew(const FloatImage& image, double tilt) {
  check_image("skew", image);
  check(std::isfinite(tilt), "[skew] expected a finite tilt, got {}", tilt);
  return moved(image, 0, [=](std::int64_t y) { return std::floor(static_cast<double>(y) * tilt); });
}

FloatImage add_noise(const FloatImage& image, double amount, const RandomKey& key) {
  check_image("add_noise", image);
  check(amount >= 0 && amount <= 1, "[add_noise] expected an amount from 0 to 1, got {}", amount);
  FloatImage out = image;
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const Words4 block = key.block(static_cast<std::uint32_t>(1 + i / 8));
    const double uniform = 2.0 * detail::noise_bits(block, static_cast<std::uint32_t>(i % 8)) - 65535;
    out.values[i] = static_cast<float>(std::clamp(image.values[i] + amount * uniform / 65536, 0.0, 1.0));
  }
  return out;
}

}  // namespace tandem
