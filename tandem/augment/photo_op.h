// The operations of ColorJitter, RandAugment and perspective on pixels, in integers as PIL's ImageEnhance,
// ImageOps and nearest-neighbor transforms compute them, so that the CPU and the GPU give the same bytes.
// There are three kinds: a lookup table per channel, a formula per pixel, and operations that read other
// pixels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/augment/photo_arguments.h"

namespace tandem::detail {

// Interpolates or extrapolates from `from` to `to` by `factor` in 1/65536, clipped to 0 … 255.
constexpr std::int32_t blend_levels(std::int32_t from, std::int32_t to, std::int32_t factor) {
  const std::int32_t level = (from << 16) + factor * (to - from);
  return level < 0 ? 0 : level > 255 << 16 ? 255 : level >> 16;
}

constexpr std::int32_t gray_level(std::int32_t r, std::int32_t g, std::int32_t b) {
  return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
}

constexpr bool needs_gray_mean(PhotoOpKind kind) {
  return kind == PhotoOpKind::contrast;
}
constexpr bool needs_histogram(PhotoOpKind kind) {
  return kind == PhotoOpKind::auto_contrast || kind == PhotoOpKind::equalize;
}
constexpr bool uses_table(PhotoOpKind kind) {
  return kind == PhotoOpKind::brightness || kind == PhotoOpKind::contrast || kind == PhotoOpKind::posterize ||
         kind == PhotoOpKind::solarize || needs_histogram(kind);
}

constexpr std::int32_t rounded_mean(std::int64_t sum, std::int64_t count) {
  return static_cast<std::int32_t>((2 * sum + count) / (2 * count));
}

// Fills the lookup table of one channel. `histogram` and `gray_mean` are used only by operations that need
// them.
constexpr void make_table(const PhotoOp& op, std::int32_t gray_mean, const std::uint32_t* histogram,
                          std::uint8_t* table) {
  std::int32_t min = 255, max = 0;
  std::int64_t total = 0;
  if (needs_histogram(op.kind))
    for (std::int32_t level = 0; level < 256; ++level) {
      if (histogram[level] == 0) continue;
      if (level < min) min = level;
      max = level;
      total += histogram[level];
    }
  const std::int64_t step = op.kind == PhotoOpKind::equalize ? (total - histogram[max]) / 255 : 0;
  std::int64_t below = step / 2;
  for (std::int32_t level = 0; level < 256; ++level) {
    std::int32_t to = level;
    switch (op.kind) {
      case PhotoOpKind::brightness:
        to = blend_levels(0, level, op.value);
        break;
      case PhotoOpKind::contrast:
        to = blend_levels(gray_mean, level, op.value);
        break;
      case PhotoOpKind::posterize:
        to = level & op.value;
        break;
      case PhotoOpKind::solarize:
        to = level < op.value ? level : 255 - level;
        break;
      case PhotoOpKind::auto_contrast:
        if (max > min) to = (level - min) * 255 / (max - min);
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
  const std::int32_t gray = gray_level(p.r, p.g, p.b);
  return {blend_levels(gray, p.r, factor), blend_levels(gray, p.g, factor), blend_levels(gray, p.b, factor)};
}

// Rotates the hue as PIL does, through 8-bit HSV with the same rounding and the same float types. Only exact
// products are added, so that contraction to fma cannot change a result.
constexpr PhotoPixel rotate_hue(const PhotoPixel& p, std::int32_t rotation) {
  const std::int32_t max = p.r > p.g ? (p.r > p.b ? p.r : p.b) : (p.g > p.b ? p.g : p.b);
  const std::int32_t min = p.r < p.g ? (p.r < p.b ? p.r : p.b) : (p.g < p.b ? p.g : p.b);
  if (max == min) return p;
  const auto range = static_cast<float>(max - min);
  const float rc = static_cast<float>(max - p.r) / range, gc = static_cast<float>(max - p.g) / range,
              bc = static_cast<float>(max - p.b) / range;
  const float sixths = p.r == max   ? bc - gc
                       : p.g == max ? static_cast<float>(2.0 + static_cast<double>(rc) - bc)
                                    : static_cast<float>(4.0 + static_cast<double>(gc) - rc);
  const double circle = sixths / 6.0 + 1.0;
  const auto fraction = static_cast<float>(circle >= 1 ? circle - 1 : circle);
  const auto hue = (static_cast<std::int32_t>(fraction * 255.0) + rotation) & 255;
  const auto saturation = static_cast<std::int32_t>(range / static_cast<float>(max) * 255.0);
  if (saturation == 0) return {max, max, max};
  const double position = hue * 6.0 / 255.0;
  const auto sector = static_cast<std::int32_t>(position);
  const auto f = static_cast<float>(position - sector);
  const auto s = static_cast<float>(saturation / 255.0);
  const auto level = [&](double factor) {
    return static_cast<std::int32_t>(std::fma(static_cast<double>(max), factor, 0.5));
  };
  const std::int32_t low = level(1.0 - s), falling = level(1.0 - static_cast<double>(s) * f),
                     rising = level(std::fma(-static_cast<double>(s), 1.0 - f, 1.0));
  switch (sector % 6) {
    case 0:
      return {max, rising, low};
    case 1:
      return {falling, max, low};
    case 2:
      return {low, max, rising};
    case 3:
      return {low, falling, max};
    case 4:
      return {rising, low, max};
    default:
      return {max, low, falling};
  }
}

// Moves a level away from or towards the weighted mean of its 3×3 neighborhood; `around` is the sum of the
// eight neighbors.
constexpr std::int32_t sharpen_level(std::int32_t level, std::int32_t around, std::int32_t factor) {
  const std::int32_t smooth = (2 * (around + 5 * level) + 13) / 26;
  return blend_levels(smooth, level, factor);
}

// The source of output pixel (x, y) of a geometric operation; false if it is outside the image.
constexpr bool source_pixel(const PhotoOp& op, std::int32_t x, std::int32_t y, std::int32_t height,
                            std::int32_t width, std::int32_t& from_x, std::int32_t& from_y) {
  from_x = (op.map[0] * x + op.map[1] * y + op.map[2]) >> 16;
  from_y = (op.map[3] * x + op.map[4] * y + op.map[5]) >> 16;
  return from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
}

// Applies the operation in place to an RGB image; `copy` is a buffer for operations that read other pixels.
void apply_photo_op(const PhotoOp& op, int height, int width, std::uint8_t* image,
                    std::vector<std::uint8_t>& copy);

}  // namespace tandem::detail
