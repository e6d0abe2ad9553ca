#include "tandem/image/same_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr int side = int(compared_side);

using Plane = std::array<float, size_t(side) * side>;

struct Picture {
  std::array<Plane, 3> colors;
  Plane luma, x_gradient, y_gradient;
};

Picture picture_of(const Image& image) {
  Picture picture;
  for (size_t i = 0; i < picture.luma.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) picture.colors[c][i] = float(image.pixels[3 * i + c]);
    picture.luma[i] =
        0.299f * picture.colors[0][i] + 0.587f * picture.colors[1][i] + 0.114f * picture.colors[2][i];
  }
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const auto at = [&](int row, int column) {
        return picture.luma[size_t(std::clamp(row, 0, side - 1) * side + std::clamp(column, 0, side - 1))];
      };
      picture.x_gradient[size_t(y * side + x)] = (at(y, x + 1) - at(y, x - 1)) / 2;
      picture.y_gradient[size_t(y * side + x)] = (at(y + 1, x) - at(y - 1, x)) / 2;
    }
  return picture;
}

// Pixel (x, y) of one picture is at (x + shift + stretch · (position from −1 to 1)) of the other, likewise y.
struct Motion {
  std::array<double, 4> values{};  // x shift, x stretch, y shift, y stretch, in pixels

  double x(int column) const { return column + values[0] + values[1] * from_center(column); }
  double y(int row) const { return row + values[2] + values[3] * from_center(row); }
  static double from_center(int i) { return 2.0 * i / (side - 1) - 1; }
};

// A position between pixels, for linear interpolation.
struct Place {
  size_t index;
  float u, v;

  Place(double x, double y) {
    x = std::clamp(x, 0.0, side - 1.001), y = std::clamp(y, 0.0, side - 1.001);
    index = size_t(int(y) * side + int(x));
    u = float(x - int(x)), v = float(y - int(y));
  }
  float of(const Plane& plane) const {
    const float* const p = plane.data() + index;
    return (1 - v) * ((1 - u) * p[0] + u * p[1]) + v * ((1 - u) * p[side] + u * p[side + 1]);
  }
};

// Solves the equations (the last column is the right side) by elimination; false if they are singular.
template <size_t N>
bool solve(std::array<std::array<double, N + 1>, N>& rows, std::array<double, N>& solution) {
  for (size_t i = 0; i < N; ++i) {
    const auto pivot = std::max_element(rows.begin() + std::ptrdiff_t(i), rows.end(),
                                        [i](auto& a, auto& b) { return std::abs(a[i]) < std::abs(b[i]); });
    if (std::abs((*pivot)[i]) < 1e-9) return false;
    std::swap(rows[i], *pivot);
    for (size_t r = 0; r < N; ++r) {
      if (r == i) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (size_t k = i; k <= N; ++k) rows[r][k] -= factor * rows[i][k];
    }
  }
  for (size_t i = 0; i < N; ++i) solution[i] = rows[i][N] / rows[i][i];
  return true;
}

constexpr int border = 2;  // may lie outside of the other picture

// The motion with the smallest squared difference of brightness, by Gauss-Newton steps (Lucas and Kanade
// 1981) that also allow for other brightness and contrast.
Motion align(const Picture& a, const Picture& b) {
  constexpr int max_steps = 8;
  constexpr double max_motion = 0.045 * side, done = 0.02;
  constexpr double damping = 1e-3 * (side - 2 * border) * (side - 2 * border);
  constexpr size_t unknowns = 6;
  Motion motion;
  for (int step = 0; step < max_steps; ++step) {
    std::array<std::array<double, unknowns + 1>, unknowns> equations{};
    for (int y = border; y < side - border; ++y)
      for (int x = border; x < side - border; ++x) {
        const Place place(motion.x(x), motion.y(y));
        const double value = place.of(a.luma), dx = place.of(a.x_gradient), dy = place.of(a.y_gradient);
        // The derivatives by the motion, brightness and contrast, and the difference.
        const std::array<double, unknowns + 1> row{
            dx,           dx * Motion::from_center(x),         dy, dy * Motion::from_center(y), 1,
            value / side, b.luma[size_t(y * side + x)] - value};
        for (size_t i = 0; i < unknowns; ++i)
          for (size_t k = i; k <= unknowns; ++k) equations[i][k] += row[i] * row[k];
      }
    for (size_t i = 0; i < unknowns; ++i)
      for (size_t k = 0; k < i; ++k) equations[i][k] = equations[k][i];
    for (size_t i = 0; i < motion.values.size(); ++i) equations[i][i] += damping;
    std::array<double, unknowns> change{};
    if (!solve(equations, change)) break;
    double largest = 0;
    for (size_t i = 0; i < motion.values.size(); ++i) {
      motion.values[i] = std::clamp(motion.values[i] + change[i], -max_motion, max_motion);
      largest = std::max(largest, std::abs(change[i]));
    }
    if (largest < done) break;
  }
  return motion;
}

double deviation(const Plane& plane) {
  double sum = 0, squares = 0;
  for (const float value : plane) sum += value, squares += double(value) * value;
  const double mean = sum / double(plane.size());
  return std::sqrt(std::max(0.0, squares / double(plane.size()) - mean * mean));
}

// Pixels are compared in cells, because interpolation between pixels is not exact. The root mean square and
// the maximum of the differences of the cells' colors, in levels.
struct Difference {
  double rms = 0, max = 0;
};

// Of a, moved, and b, in cells of size x size pixels; those at the border are left out.
Difference cell_difference(const Picture& a, const Picture& b, const Motion& motion, int size) {
  const int margin = size < side / 4 ? size : 0;
  Difference difference;
  double squares = 0;
  int cells = 0;
  for (int top = margin; top + size <= side - margin; top += size)
    for (int left = margin; left + size <= side - margin; left += size, ++cells) {
      std::array<double, 3> sums{};
      for (int y = top; y < top + size; ++y)
        for (int x = left; x < left + size; ++x) {
          const Place place(motion.x(x), motion.y(y));
          for (size_t c = 0; c < 3; ++c) sums[c] += place.of(a.colors[c]) - b.colors[c][size_t(y * side + x)];
        }
      for (const double sum : sums) squares += std::pow(sum / (size * size), 2);
      difference.max = std::max(difference.max, std::abs(sums[1]) / (size * size));  // green: mostly luma
    }
  difference.rms = std::sqrt(squares / (3 * cells));
  return difference;
}

// The bounds grow with the contrast; blank images must agree more closely. Measured on 5,000 plates and 5,000
// scenes, and copies of 300 each that were resized, compressed at quality 25 to 90 and cropped by up to 2 %
// on each side: the differences of copies at quality 50 or more were at most 1.9 levels, those of the most
// similar different images at least twice the bound.
bool matches(const Picture& a, const Picture& b, double contrast) {
  const Difference difference = cell_difference(a, b, align(a, b), 4);
  return difference.rms <= std::min(2.5, 1 + 0.2 * contrast) + 0.05 * contrast &&
         difference.max <= 6 + 0.15 * contrast;
}

}  // namespace

bool is_same_picture(const Image& a, const Image& b) {
  for (const Image* image : {&a, &b})
    check(image->height == compared_side && image->width == compared_side && image->channels == 3,
          "[same_picture] expected RGB images of {0}x{0}, got {1}x{2} with {3} channels", compared_side,
          image->width, image->height, image->channels);
  const Picture first = picture_of(a), second = picture_of(b);
  const double contrast = std::min(deviation(first.luma), deviation(second.luma));
  // Most different images differ in large parts already, before they are aligned.
  if (cell_difference(first, second, {}, 16).rms > 4 + 0.2 * contrast) return false;
  // The one that was cut off is found inside the other.
  return matches(first, second, contrast) || matches(second, first, contrast);
}

}  // namespace tandem
