// Where the pixels of a rotated, zoomed or cropped image are read, in fixed point, with the same bits on
// every machine (arguments.h explains how).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tandem/image/image.h"

namespace tandem::detail {

// The source coordinates of a pixel: row x·yx + y·yy + y0, column x·xx + y·xy + x0, in 1/2^fraction pixels.
// xy is −yx and yy is xx.
struct SourceMap {
  int fraction = 0;
  std::int64_t xx = 0, xy = 0, x0 = 0, yx = 0, yy = 0, y0 = 0;

  constexpr std::int64_t column(std::int64_t x, std::int64_t y) const { return x * xx + y * xy + x0; }
  constexpr std::int64_t row(std::int64_t x, std::int64_t y) const { return x * yx + y * yy + y0; }
};

// Up to this many pixels per side, coordinates fit 32 bits; they use all remaining bits for the fraction.
inline constexpr int max_small_side = 256;
inline constexpr int weight_bits = 11;

constexpr int coordinate_fraction(const ImageSize& size) {
  const int side = size.height > size.width ? size.height : size.width;
  return side <= max_small_side ? 29 - static_cast<int>(std::bit_width(static_cast<unsigned>(side))) : 30;
}

struct SineCosine {
  double sine, cosine;
};

// Sine and cosine of an angle in degrees; exact at multiples of 90.
[[gnu::always_inline]] constexpr SineCosine sine_cosine(double degrees) {
  const auto quarters = static_cast<std::int64_t>(std::fma(degrees, 1.0 / 90, degrees < 0 ? -0.5 : 0.5));
  const double x = std::fma(-90.0, static_cast<double>(quarters), degrees) * 0x1.1df46a2529d39p-6;  // π/180
  const double square = x * x;
  constexpr double s[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
  constexpr double c[] = {-1.0 / 2,       1.0 / 24,        -1.0 / 720,        1.0 / 40320,
                          -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200};
  double sine = s[6], cosine = c[6];
  for (int i = 5; i >= 0; --i) {
    sine = std::fma(sine, square, s[i]);
    cosine = std::fma(cosine, square, c[i]);
  }
  sine = std::fma(sine * square, x, x);
  cosine = std::fma(cosine, square, 1.0);
  switch (quarters & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

// Rounds to nearest, halves away from zero.
constexpr std::int64_t round_to_int(double value) {
  return static_cast<std::int64_t>(value < 0 ? value - 0.5 : value + 0.5);
}

// SciPy's definition of rotate: out[y][x] is read at [[cos, sin], [−sin, cos]] · ([y, x] − center) + center.
[[gnu::always_inline]] constexpr SourceMap rotate_map(const ImageSize& size, double degrees) {
  const int fraction = coordinate_fraction(size);
  const auto one = static_cast<double>(std::int64_t{1} << fraction);
  const auto [sine, cosine] = sine_cosine(degrees);
  const double cx = (size.width - 1) * 0.5, cy = (size.height - 1) * 0.5;
  SourceMap map{.fraction = fraction};
  map.xx = map.yy = round_to_int(cosine * one);
  map.yx = round_to_int(sine * one);
  map.xy = -map.yx;
  map.x0 = round_to_int(std::fma(sine, cy, std::fma(-cosine, cx, cx)) * one);
  map.y0 = round_to_int(std::fma(-sine, cx, std::fma(-cosine, cy, cy)) * one);
  return map;
}

// The first source coordinate along an axis of `side` pixels that are `step` apart, moved by a rounding error
// so that all of them are inside.
constexpr std::int64_t start_inside(double first, int side, std::int64_t step, int fraction) {
  const std::int64_t free = (std::int64_t{side - 1} << fraction) - (side - 1) * step;
  const std::int64_t start = round_to_int(first * static_cast<double>(std::int64_t{1} << fraction));
  return start < 0 ? 0 : start > free ? free : start;
}

// out[y][x] is read at [y, x] · scale + [top, left]; everything is inside the image.
[[gnu::always_inline]] constexpr SourceMap box_map(const ImageSize& size, double scale, double top,
                                                   double left) {
  SourceMap map{.fraction = coordinate_fraction(size)};
  map.xx = map.yy = static_cast<std::int64_t>(scale * static_cast<double>(std::int64_t{1} << map.fraction));
  map.x0 = start_inside(left, size.width, map.xx, map.fraction);
  map.y0 = start_inside(top, size.height, map.yy, map.fraction);
  return map;
}

// out[y][x] is read at ([y, x] − center) / factor + center.
[[gnu::always_inline]] constexpr SourceMap zoom_map(const ImageSize& size, double factor) {
  const double scale = 1 / factor, cx = (size.width - 1) * 0.5, cy = (size.height - 1) * 0.5;
  const double left = std::fma(-scale, cx, cx), top = std::fma(-scale, cy, cy);
  if (factor >= 1) return box_map(size, scale, top, left);
  SourceMap map{.fraction = coordinate_fraction(size)};
  const auto one = static_cast<double>(std::int64_t{1} << map.fraction);
  map.xx = map.yy = round_to_int(scale * one);
  map.x0 = round_to_int(left * one);
  map.y0 = round_to_int(top * one);
  return map;
}

// `left` and `top` are 0 … 1: the part of the remaining width and height that lies before the box.
[[gnu::always_inline]] constexpr SourceMap crop_map(const ImageSize& size, double fraction, double left,
                                                    double top) {
  const double scale = std::sqrt(fraction);
  return box_map(size, scale, top * ((size.height - 1) * (1 - scale)),
                 left * ((size.width - 1) * (1 - scale)));
}

}  // namespace tandem::detail
