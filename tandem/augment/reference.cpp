#include "tandem/augment/reference.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

// Reads out[y][x] at the row and column that `source` gives; outside is 0.
template <class Source>
FloatImage resampled(const FloatImage& image, Interpolation interpolation, const Source& source) {
  const auto [height, width, channels] = image.size;
  std::vector<double> values(image.values.begin(), image.values.end());
  if (interpolation == Interpolation::cubic) detail::spline_coefficients(values.data(), image.size);
  const auto at = interpolation == Interpolation::nearest  ? at_nearest
                  : interpolation == Interpolation::linear ? at_linear
                                                           : at_cubic;
  FloatImage out{image.size, std::vector<float>(image.values.size())};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const auto [row, column] = source(y, x);
      if (row < 0 || row > height - 1 || column < 0 || column > width - 1) continue;
      for (int c = 0; c < channels; ++c)
        out.values[(std::int64_t{y} * width + x) * channels + c] =
            static_cast<float>(at(values, image.size, row, column, c));
    }
  return out;
}

// The sum of the neighbors of value (y, x) of a channel; weight(i, j) is that of kernel row i, column j.
template <class Weight>
double correlated(const FloatImage& image, int y, int x, int channel, int kernel_height, int kernel_width,
                  const Weight& weight) {
  const auto [height, width, channels] = image.size;
  double sum = 0;
  for (int i = 0; i < kernel_height; ++i)
    for (int j = 0; j < kernel_width; ++j) {
      const int row = y + i - kernel_height / 2, column = x + j - kernel_width / 2;
      if (row >= 0 && row < height && column >= 0 && column < width)
        sum += weight(i, j) * image.values[(std::int64_t{row} * width + column) * channels + channel];
    }
  return sum;
}

}  // namespace

FloatImage rotate(const FloatImage& image, double degrees, Interpolation interpolation) {
  check_image("rotate", image);
  check(std::abs(degrees) <= 36000, "[rotate] expected degrees from -36000 to 36000, got {}", degrees);
  const auto [sine, cosine] = detail::sine_cosine(degrees);
  const double cy = (image.size.height - 1) / 2.0, cx = (image.size.width - 1) / 2.0;
  return resampled(image, interpolation, [&, sine = sine, cosine = cosine](int y, int x) {
    return std::pair(cosine * (y - cy) + sine * (x - cx) + cy, cosine * (x - cx) - sine * (y - cy) + cx);
  });
}

FloatImage zoom(const FloatImage& image, double factor, Interpolation interpolation) {
  check_image("zoom", image);
  check(factor >= 0.25 && factor <= 100, "[zoom] expected a factor from 0.25 to 100, got {}", factor);
  const double cy = (image.size.height - 1) / 2.0, cx = (image.size.width - 1) / 2.0;
  return resampled(image, interpolation,
                   [&](int y, int x) { return std::pair((y - cy) / factor + cy, (x - cx) / factor + cx); });
}

FloatImage crop(const FloatImage& image, double fraction, double left, double top) {
  check_image("crop", image);
  check(fraction >= 1e-6 && fraction <= 1, "[crop] expected a fraction of the area from 1e-06 to 1, got {}",
        fraction);
  check(left >= 0 && left <= 1 && top >= 0 && top <= 1,
        "[crop] expected a position from 0 to 1, got {} and {}", left, top);
  const double scale = std::sqrt(fraction);
  const double last_row = image.size.height - 1, last_column = image.size.width - 1;
  return resampled(image, Interpolation::linear, [&](int y, int x) {
    return std::pair(std::min(scale * y + top * (1 - scale) * last_row, last_row),
                     std::min(scale * x + left * (1 - scale) * last_column, last_column));
  });
}

FloatImage flip(const FloatImage& image) {
  check_image("flip", image);
  const auto [height, width, channels] = image.size;
  FloatImage out = image;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      std::copy_n(image.values.begin() + (y * width + width - 1 - x) * channels, channels,
                  out.values.begin() + (y * width + x) * channels);
  return out;
}

FloatImage blur(const FloatImage& image, const BlurKernel& kernel) {
  check_image("blur", image);
  compose({random_blur(1, kernel)});  // checks the kernel
  const auto [height, width, channels] = image.size;
  const double divisor = detail::blur_divisor(kernel);
  const auto weight = [&](int i, int j) { return kernel.weights[i * kernel.width + j]; };
  const auto transposed = [&](int i, int j) { return weight(j, i); };
  FloatImage out = image;
  float* to = out.values.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        double value = correlated(image, y, x, c, kernel.height, kernel.width, weight);
        if (kernel.gradient)
          value = std::hypot(value, correlated(image, y, x, c, kernel.width, kernel.height, transposed));
        *to++ = static_cast<float>(std::clamp(value / divisor, 0.0, 1.0));
      }
  return out;
}

FloatImage shift(const FloatImage& image, int dx, int dy) {
  check_image("shift", image);
  return moved(image, dy, [=](std::int64_t) { return static_cast<double>(dx); });
}

FloatImage reflected_shift(const FloatImage& image, int dx, int dy) {
  check_image("shift", image);
  const auto [height, width, channels] = image.size;
  // One step back for every step over the border.
  const auto walk = [](std::int64_t at, std::int64_t side) {
    while (side > 1 && (at < 0 || at >= side)) at = at < 0 ? -at : 2 * (side - 1) - at;
    return side > 1 ? at : 0;
  };
  FloatImage out = image;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      std::copy_n(image.values.begin() + (walk(y + dy, height) * width + walk(x + dx, width)) * channels,
                  channels, out.values.begin() + (y * width + x) * channels);
  return out;
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
