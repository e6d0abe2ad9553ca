// What the operations on colours and places do to a pixel, in whole numbers as PIL's ImageEnhance, ImageOps
// and nearest-neighbour transforms do it, so that the CPU and the GPU come to the same bytes. Operations of
// three kinds: a table of levels for each channel, a formula for a pixel, or pixels from elsewhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/augment/photo_draw.h"

namespace tandem {

// From `from` to `to` and beyond by `factor` in 1/65536, cut off to a level.
constexpr std::int32_t blend_levels(std::int32_t from, std::int32_t to, std::int32_t factor) {
  const std::int32_t level = (from << 16) + factor * (to - from);
  return level < 0 ? 0 : level > 255 << 16 ? 255 : level >> 16;
}

constexpr std::int32_t grey_level(std::int32_t r, std::int32_t g, std::int32_t b) {
  return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
}

constexpr bool needs_grey_mean(PhotoOpKind kind) {
  return kind == PhotoOpKind::contrast;
}
constexpr bool needs_histogram(PhotoOpKind kind) {
  return kind == PhotoOpKind::auto_contrast || kind == PhotoOpKind::equalize;
}
constexpr bool is_table(PhotoOpKind kind) {
  return kind == PhotoOpKind::brightness || kind == PhotoOpKind::contrast || kind == PhotoOpKind::posterize ||
         kind == PhotoOpKind::solarize || needs_histogram(kind);
}

constexpr std::int32_t rounded_mean(std::int64_t sum, std::int64_t count) {
  return static_cast<std::int32_t>((2 * sum + count) / (2 * count));
}

// One channel's table of 256 levels; `histogram` and `grey_mean` where they are needed.
constexpr void make_table(const PhotoOp& op, std::int32_t grey_mean, const std::uint32_t* histogram,
                          std::uint8_t* table) {
  std::int32_t least = 255, most = 0;
  std::int64_t total = 0;
  if (needs_histogram(op.kind))
    for (std::int32_t level = 0; level < 256; ++level) {
      if (histogram[level] == 0) continue;
      if (level < least) least = level;
      most = level;
      total += histogram[level];
    }
  const std::int64_t step = op.kind == PhotoOpKind::equalize ? (total - histogram[most]) / 255 : 0;
  std::int64_t below = step / 2;
  for (std::int32_t level = 0; level < 256; ++level) {
    std::int32_t to = level;
    switch (op.kind) {
      case PhotoOpKind::brightness:
        to = blend_levels(0, level, op.value);
        break;
      case PhotoOpKind::contrast:
        to = blend_levels(grey_mean, level, op.value);
        break;
      case PhotoOpKind::posterize:
        to = level & op.value;
        break;
      case PhotoOpKind::solarize:
        to = level < op.value ? level : 255 - level;
        break;
      case PhotoOpKind::auto_contrast:
        if (most > least) to = (level - least) * 255 / (most - least);
        break;
      case PhotoOpKind::equalize:
        if (step > 0) to = static_cast<std::int32_t>(below / step);
        below += histogram[level];
        break;
      default:
        break;
    }
    table[level] = static_cast<std::uint8_t>(to < 0 ? 0 : to > 255 ? 255 : to);
  }
}

struct PhotoPixel {
  std::int32_t r = 0, g = 0, b = 0;
};

constexpr PhotoPixel saturate_pixel(const PhotoPixel& p, std::int32_t factor) {
  const std::int32_t grey = grey_level(p.r, p.g, p.b);
  return {blend_levels(grey, p.r, factor), blend_levels(grey, p.g, factor), blend_levels(grey, p.b, factor)};
}

// PIL's way through HSV of 8 bits, with its roundings: floats where it has floats. No product here is added
// to anything unless it is exact.
constexpr PhotoPixel turn_hue(const PhotoPixel& p, std::int32_t turn) {
  const std::int32_t most = p.r > p.g ? (p.r > p.b ? p.r : p.b) : (p.g > p.b ? p.g : p.b);
  const std::int32_t least = p.r < p.g ? (p.r < p.b ? p.r : p.b) : (p.g < p.b ? p.g : p.b);
  if (most == least) return p;
  const auto range = static_cast<float>(most - least);
  const float rc = static_cast<float>(most - p.r) / range, gc = static_cast<float>(most - p.g) / range,
              bc = static_cast<float>(most - p.b) / range;
  const float sixths = p.r == most   ? bc - gc
                       : p.g == most ? static_cast<float>(2.0 + static_cast<double>(rc) - bc)
                                     : static_cast<float>(4.0 + static_cast<double>(gc) - rc);
  const double circle = sixths / 6.0 + 1.0;
  const auto part = static_cast<float>(circle >= 1 ? circle - 1 : circle);
  const auto hue = (static_cast<std::int32_t>(part * 255.0) + turn) & 255;
  const auto saturation = static_cast<std::int32_t>(range / static_cast<float>(most) * 255.0);
  if (saturation == 0) return {most, most, most};
  const double place = hue * 6.0 / 255.0;
  const auto sector = static_cast<std::int32_t>(place);
  const auto f = static_cast<float>(place - sector);
  const auto s = static_cast<float>(saturation / 255.0);
  const auto level = [&](double share) {
    return static_cast<std::int32_t>(std::fma(static_cast<double>(most), share, 0.5));
  };
  const std::int32_t low = level(1.0 - s), falling = level(1.0 - static_cast<double>(s) * f),
                     rising = level(std::fma(-static_cast<double>(s), 1.0 - f, 1.0));
  switch (sector % 6) {
    case 0:
      return {most, rising, low};
    case 1:
      return {falling, most, low};
    case 2:
      return {low, most, rising};
    case 3:
      return {low, falling, most};
    case 4:
      return {rising, low, most};
    default:
      return {most, low, falling};
  }
}

// The sharpness of a level: away from or towards the weighted mean of its 3×3 neighbourhood, whose other
// eight levels have the sum `around`.
constexpr std::int32_t sharpen_level(std::int32_t level, std::int32_t around, std::int32_t factor) {
  const std::int32_t smooth = (2 * (around + 5 * level) + 13) / 26;
  return blend_levels(smooth, level, factor);
}

// Where pixel (x, y) of a moved image comes from; false: from outside.
constexpr bool moved_from(const PhotoOp& op, std::int32_t x, std::int32_t y, std::int32_t height,
                          std::int32_t width, std::int32_t& from_x, std::int32_t& from_y) {
  from_x = (op.map[0] * x + op.map[1] * y + op.map[2]) >> 16;
  from_y = (op.map[3] * x + op.map[4] * y + op.map[5]) >> 16;
  return from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
}

// In place on an RGB image; `copy` is memory for it.
void apply_photo_op(const PhotoOp& op, int height, int width, std::uint8_t* image,
                    std::vector<std::uint8_t>& copy);

}  // namespace tandem
