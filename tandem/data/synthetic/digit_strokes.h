// The strokes of the ten digits. Each digit has several styles, each of one to three strokes through points
// of a 100×100 grid whose y axis points down. A stroke is smooth at its points except at corners.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tandem {

struct GridPoint {
  float x, y;
  bool corner = false;
};

struct DigitStyle {
  std::array<std::span<const GridPoint>, 3> strokes;  // unused ones are empty
};

inline constexpr std::size_t max_stroke_points = 12;

std::span<const DigitStyle> digit_styles(int digit);

}  // namespace tandem
