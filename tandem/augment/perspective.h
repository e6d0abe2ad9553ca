// Perspective maps of photographs. As in arguments.h, everything is computed by operations that every device
// rounds in the same way.
#pragma once

#include <cmath>
#include <cstdint>

namespace tandem::detail {

struct Point {
  double x = 0, y = 0;
};

// The eight coefficients of the map that takes every `to` to its `from`: Gaussian elimination with pivoting,
// in the form of torchvision's equations. False if there is no such map.
constexpr bool perspective_coefficients(const Point (&to)[4], const Point (&from)[4], double (&result)[8]) {
  double rows[8][9] = {};
  for (int i = 0; i < 4; ++i) {
    const auto [x, y] = to[i];
    const double first[9] = {x, y, 1, 0, 0, 0, -from[i].x * x, -from[i].x * y, from[i].x};
    const double second[9] = {0, 0, 0, x, y, 1, -from[i].y * x, -from[i].y * y, from[i].y};
    for (int k = 0; k < 9; ++k) {
      rows[2 * i][k] = first[k];
      rows[2 * i + 1][k] = second[k];
    }
  }
  constexpr double min_pivot = 1e-9;  // of coordinates of whole pixels
  const auto magnitude = [](double value) { return value < 0 ? -value : value; };
  for (int column = 0; column < 8; ++column) {
    int pivot = column;
    for (int row = column + 1; row < 8; ++row)
      if (magnitude(rows[row][column]) > magnitude(rows[pivot][column])) pivot = row;
    if (magnitude(rows[pivot][column]) < min_pivot) return false;
    for (int k = 0; k < 9; ++k) {
      const double swapped = rows[column][k];
      rows[column][k] = rows[pivot][k];
      rows[pivot][k] = swapped;
    }
    for (int row = column + 1; row < 8; ++row) {
      const double factor = rows[row][column] / rows[column][column];
      for (int k = column; k < 9; ++k) rows[row][k] = std::fma(-factor, rows[column][k], rows[row][k]);
    }
  }
  for (int row = 7; row >= 0; --row) {
    double sum = rows[row][8];
    for (int k = row + 1; k < 8; ++k) sum = std::fma(-rows[row][k], result[k], sum);
    result[row] = sum / rows[row][row];
  }
  return true;
}

// The level of one channel at output pixel (x, y), bilinear as PIL's Image.transform(): `channel` points to
// the first pixel's level, pixels are three bytes apart. Outside the image 0.
constexpr std::uint8_t perspective_level(const double (&c)[8], int x, int y, int height, int width,
                                         const std::uint8_t* channel) {
  const double px = x + 0.5, py = y + 0.5;
  const double w = std::fma(c[6], px, std::fma(c[7], py, 1.0));
  const double from_x = std::fma(c[0], px, std::fma(c[1], py, c[2])) / w;
  const double from_y = std::fma(c[3], px, std::fma(c[4], py, c[5])) / w;
  if (!(from_x >= 0 && from_x < width && from_y >= 0 && from_y < height)) return 0;
  const double left = from_x - 0.5, top = from_y - 0.5;
  const int column = left < 0 ? -1 : static_cast<int>(left), row = top < 0 ? -1 : static_cast<int>(top);
  const double dx = left - column, dy = top - row;
  const int x0 = column < 0 ? 0 : column, x1 = column + 1 < width ? column + 1 : width - 1;
  const int y0 = row < 0 ? 0 : row, y1 = row + 1 < height ? row + 1 : height - 1;
  const auto level = [&](int at_y, int at_x) {
    return static_cast<double>(channel[3 * (static_cast<std::int64_t>(at_y) * width + at_x)]);
  };
  const double upper = std::fma(level(y0, x1) - level(y0, x0), dx, level(y0, x0));
  const double lower = std::fma(level(y1, x1) - level(y1, x0), dx, level(y1, x0));
  return static_cast<std::uint8_t>(std::fma(lower - upper, dy, upper));
}

}  // namespace tandem::detail
