#include "tandem/study/grade/array_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/image/encode_png.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr std::int64_t picture_side = 32;  // elements that a picture shows

struct Values {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> expected, got;

  std::size_t index(std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>(y * columns + x);
  }
};

struct Window {
  std::int64_t y = 0, x = 0, height = 0, width = 0;
};

// Around an element, inside the array. A narrow array gets a short window, so that elements can be
// recognized.
Window window_at(const Values& values, std::size_t element) {
  constexpr std::int64_t max_aspect = 4;
  const std::int64_t height = std::min({picture_side, values.rows, max_aspect * values.columns});
  const std::int64_t width = std::min({picture_side, values.columns, max_aspect * values.rows});
  const auto place = [](std::int64_t center, std::int64_t length, std::int64_t size) {
    return std::clamp<std::int64_t>(center - length / 2, 0, size - length);
  };
  const std::int64_t y = static_cast<std::int64_t>(element) / values.columns;
  const std::int64_t x = static_cast<std::int64_t>(element) % values.columns;
  return {place(y, height, values.rows), place(x, width, values.columns), height, width};
}

using Color = std::array<double, 3>;
constexpr Color magenta{210, 0, 190};  // not a number

// From dark blue over green to yellow.
Color sequential(double share) {
  constexpr std::array<Color, 5> stops{
      {{48, 18, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  Color color{};
  for (std::size_t c = 0; c < 3; ++c)
    color[c] = stops[low][c] + (stops[low + 1][c] - stops[low][c]) * (at - static_cast<double>(low));
  return color;
}

// From light gray to red: a wrong element is never as light as a right one.
Color alarm(double share) {
  if (share <= 0) return {232, 235, 239};
  const double s = 0.25 + 0.75 * std::min(share, 1.0);
  return {232 - s * 50, 235 - s * 210, 239 - s * 210};
}

template <class ColorAt>
GradePicture picture(std::string caption, const Window& window, ColorAt&& color_at) {
  const std::int64_t scale = std::max<std::int64_t>(1, 144 / std::max(window.height, window.width));
  Image image = make_image(window.height * scale, window.width * scale, 3);
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const Color color = color_at(window.y + y / scale, window.x + x / scale);
      for (int c = 0; c < 3; ++c)
        image.at(y, x, c) =
            static_cast<std::uint8_t>(std::clamp(color[static_cast<std::size_t>(c)], 0.0, 255.0));
    }
  const std::vector<std::uint8_t> png = encode_png(image);
  return {std::move(caption), std::string(png.begin(), png.end())};
}

std::vector<GradePicture> pictures_of(const Values& values, std::size_t worst, double limit) {
  const Window window = window_at(values, worst);
  double low = INFINITY, high = -INFINITY;
  for (std::int64_t y = window.y; y < window.y + window.height; ++y)
    for (std::int64_t x = window.x; x < window.x + window.width; ++x) {
      low = std::min(low, values.expected[values.index(y, x)]);
      high = std::max(high, values.expected[values.index(y, x)]);
    }
  const double range = high > low ? high - low : 1;
  const auto value_color = [&](double value) {
    return std::isnan(value) ? magenta : sequential((value - low) / range);
  };
  const auto error_color = [&](std::size_t i) {
    const double error = std::abs(values.got[i] - values.expected[i]);
    return std::isnan(error) ? magenta : alarm(error <= limit ? 0 : error / range);
  };
  const std::string place =
      window.height == values.rows && window.width == values.columns
          ? ""
          : fmt::format(", rows {}–{}, columns {}–{}", window.y, window.y + window.height - 1, window.x,
                        window.x + window.width - 1);
  std::vector<GradePicture> all;
  all.push_back(picture("expected" + place, window, [&](std::int64_t y, std::int64_t x) {
    return value_color(values.expected[values.index(y, x)]);
  }));
  all.push_back(picture("got", window, [&](std::int64_t y, std::int64_t x) {
    return value_color(values.got[values.index(y, x)]);
  }));
  all.push_back(picture("difference", window,
                        [&](std::int64_t y, std::int64_t x) { return error_color(values.index(y, x)); }));
  constexpr std::int64_t max_whole_aspect = 10;  // a line of points would show nothing
  if (place.empty() ||
      std::max(values.rows, values.columns) > max_whole_aspect * std::min(values.rows, values.columns))
    return all;
  // The whole array: a point is wrong when an element in its field is.
  const Window whole{0, 0, std::min(values.rows, 4 * picture_side),
                     std::min(values.columns, 4 * picture_side)};
  std::vector<double> wrong(static_cast<std::size_t>(whole.height * whole.width), 0);
  for (std::int64_t y = 0; y < values.rows; ++y)
    for (std::int64_t x = 0; x < values.columns; ++x) {
      const double error = std::abs(values.got[values.index(y, x)] - values.expected[values.index(y, x)]);
      if (error <= limit) continue;
      wrong[static_cast<std::size_t>(y * whole.height / values.rows * whole.width +
                                     x * whole.width / values.columns)] = 1;
    }
  all.push_back(picture(fmt::format("wrong elements of all {}×{}", values.rows, values.columns), whole,
                        [&](std::int64_t y, std::int64_t x) {
                          return alarm(wrong[static_cast<std::size_t>(y * whole.width + x)]);
                        }));
  return all;
}

std::string shown(double value) {
  if (std::isnan(value)) return "NaN";
  return value == std::round(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.6g}", value);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && !is_floating(a.dtype()) &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.numel()) * size_of(a.dtype())) == 0;
}

}  // namespace

std::optional<ArrayDifference> difference_of(const Tensor& expected, const Tensor& got, double tolerance) {
  expect(expected.shape() == got.shape() && expected.rank() == 2);
  if (got.numel() == 0 || same_bytes(expected, got)) return std::nullopt;
  Values values{expected.size(0), expected.size(1), expected.to_vector<double>(), got.to_vector<double>()};
  double magnitude = 0;
  for (const double value : values.expected) magnitude = std::max(magnitude, std::abs(value));
  const double limit = tolerance * magnitude;
  std::size_t wrong = 0, first = 0, worst = 0;
  double worst_error = -1;
  for (std::size_t i = 0; i < values.got.size(); ++i) {
    const double error = std::abs(values.got[i] - values.expected[i]);
    if (error <= limit) continue;  // false for NaN
    if (wrong++ == 0) first = i;
    if (const double size = std::isnan(error) ? 0 : error; size > worst_error) {
      worst_error = size;
      worst = i;
    }
  }
  if (wrong == 0) return std::nullopt;
  std::string sentence = fmt::format(
      "{} of {} elements {} wrong: element ({}, {}) is {}, expected {}",
      format_count(static_cast<std::int64_t>(wrong)), format_count(got.numel()), wrong == 1 ? "is" : "are",
      static_cast<std::int64_t>(first) / values.columns, static_cast<std::int64_t>(first) % values.columns,
      shown(values.got[first]), shown(values.expected[first]));
  if (tolerance > 0 && std::isfinite(worst_error) && worst_error > 0)
    sentence += fmt::format("; the largest error is {:.2g}, allowed is {:.2g}", worst_error, limit);
  return ArrayDifference{std::move(sentence), pictures_of(values, worst, limit)};
}

}  // namespace tandem
