// Heat maps over photographs: a coarse grid of values, enlarged and colored over the photograph in gray. Hot
// regions are brighter than any other, so that the result can be read without colors too.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

/// A grid of values over a rectangle of a photograph.
struct HeatMap {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;  ///< height × width, from 0 to 1
  /// The rectangle that the grid covers, in pixels of the photograph; it may extend beyond it.
  double x = 0, y = 0, covered_width = 0, covered_height = 0;
  bool mirrored = false;  ///< whether the first column is at the right
};

/// The photograph in gray with the heat map over it, in the photograph's size, RGB. Between the centers of
/// its cells the map is interpolated linearly. A line is drawn where it is a half. What the map does not
/// cover is dark. Throws Error for an empty photograph, and for a grid that is empty or does not have
/// height × width values.
Image render_heat(const Image& photo, const HeatMap& heat);

/// The colors from 0, at the left, to 1 as render_heat() shows them over medium gray.
Image heat_scale(int64_t height, int64_t width);

}  // namespace tandem
