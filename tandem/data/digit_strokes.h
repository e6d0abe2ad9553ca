// How people write the ten digits: for each several styles, each one to three strokes through points of a
// grid of 100×100 whose y runs downwards. A plain point is passed in a curve, a corner sharply.
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
  std::array<std::span<const GridPoint>, 3> strokes;  // those not needed are empty
};

inline constexpr std::size_t most_stroke_points = 12;

std::span<const DigitStyle> digit_styles(int digit);

}  // namespace tandem
