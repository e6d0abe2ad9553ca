// The weights of one output pixel of a resize, in one dimension, as Pillow defines them: a filter scaled by
// the reduction factor (so that every input pixel counts), cut off at the border, normalized in double and
// rounded to 22 bits. Plain constexpr arithmetic, so that CUDA kernels call the same functions.
#pragma once

#include <cstdint>

#include "tandem/image/resize.h"

namespace tandem::detail {

constexpr int resize_weight_bits = 22;

constexpr double resize_support(ResizeFilter filter) {
  return filter == ResizeFilter::bilinear ? 1.0 : 2.0;
}

constexpr double resize_filter_value(ResizeFilter filter, double x) {
  if (x < 0) x = -x;
  if (filter == ResizeFilter::bilinear) return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double a = -0.5;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

// The input pixels that an output pixel reads: first … first + count - 1.
struct ResizeTaps {
  ResizeFilter filter = ResizeFilter::bilinear;
  double center = 0, inverse_scale = 1;
  int64_t first = 0, count = 0;

  // The weight of input pixel first + k before normalization: divide by the sum over all k.
  constexpr double weight(int64_t k) const {
    return resize_filter_value(filter, (double(k + first) - center + 0.5) * inverse_scale);
  }
};

// The taps of output pixel i when a side of `in` pixels is resized to `out` pixels.
constexpr ResizeTaps resize_taps(ResizeFilter filter, int64_t in, int64_t out, int64_t i) {
  const double scale = double(in) / double(out);
  const double filter_scale = scale < 1.0 ? 1.0 : scale;
  const double support = resize_support(filter) * filter_scale;
  const double center = (double(i) + 0.5) * scale;
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): as in Pillow
  const int64_t begin = int64_t(center - support + 0.5), end = int64_t(center + support + 0.5);
  const int64_t first = begin < 0 ? 0 : begin, last = end > in ? in : end;
  return {filter, center, 1.0 / filter_scale, first, last - first};
}

// An upper bound on the taps of an output pixel.
constexpr int64_t max_resize_taps(ResizeFilter filter, int64_t in, int64_t out) {
  const double scale = double(in) / double(out);
  return 2 * int64_t(resize_support(filter) * (scale < 1.0 ? 1.0 : scale)) + 3;
}

// Converts a normalized weight to fixed point. An output pixel is (sum of weight x level + half) >> 22,
// clipped to 0 … 255; the sum fits 32 bits.
constexpr int32_t fixed_resize_weight(double weight) {
  const double scaled = weight * (1 << resize_weight_bits);
  return int32_t(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

constexpr uint8_t resized_level(int32_t sum) {  // `sum` includes the half
  const int32_t level = sum >> resize_weight_bits;
  return uint8_t(level < 0 ? 0 : level > 255 ? 255 : level);
}

}  // namespace tandem::detail
