#include "tandem/image/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

using Rgb = std::array<float, 3>;

// From violet to bright yellow; the luma increases from each to the next.
constexpr std::array<Rgb, 9> stops{{{110, 50, 150},
                                    {140, 50, 140},
                                    {170, 52, 115},
                                    {200, 62, 88},
                                    {225, 84, 58},
                                    {243, 120, 25},
                                    {252, 165, 10},
                                    {246, 215, 70},
                                    {252, 255, 164}}};

constexpr float max_opacity = 0.85f;
// Cold regions have this share of the photograph's contrast, hot ones the color times a factor that increases
// with it: white that is cold stays darker than black that is hot.
constexpr float gray_offset = 18, gray_scale = 0.37f, min_factor = 0.7f;
constexpr float uncovered_scale = 0.22f;
constexpr float line_level = 0.5f;
constexpr Rgb line_color{255, 255, 255};

Rgb mixed(const Rgb& from, const Rgb& to, float share) {
  Rgb result{};
  for (size_t c = 0; c < 3; ++c) result[c] = from[c] + share * (to[c] - from[c]);
  return result;
}

Rgb color_of(float heat) {
  const float position = heat * static_cast<float>(stops.size() - 1);
  const size_t below = std::min(static_cast<size_t>(position), stops.size() - 2);
  return mixed(stops[below], stops[below + 1], position - static_cast<float>(below));
}

// Where a pixel lies between the centers of two cells along one side.
struct Position {
  bool covered = false;
  int64_t first = 0, second = 0;
  float share = 0;  // of the second
};

std::vector<Position> positions(int64_t pixels, int64_t cells, double begin, double covered, bool mirrored) {
  std::vector<Position> all;
  for (int64_t i = 0; i < pixels; ++i) {
    double share = (static_cast<double>(i) + 0.5 - begin) / covered;
    if (mirrored) share = 1 - share;
    const double cell =
        std::clamp(share * static_cast<double>(cells) - 0.5, 0.0, static_cast<double>(cells - 1));
    const auto first = static_cast<int64_t>(cell);
    all.push_back({.covered = share >= 0 && share <= 1,
                   .first = first,
                   .second = std::min(first + 1, cells - 1),
                   .share = static_cast<float>(cell - static_cast<double>(first))});
  }
  return all;
}

// One row of the enlarged map.
void heat_row(const HeatMap& heat, const Position& row, const std::vector<Position>& columns,
              std::vector<float>& out) {
  const float* const upper = heat.values.data() + row.first * heat.width;
  const float* const lower = heat.values.data() + row.second * heat.width;
  for (size_t x = 0; x < columns.size(); ++x) {
    const Position& column = columns[x];
    const float top = std::lerp(upper[column.first], upper[column.second], column.share);
    const float bottom = std::lerp(lower[column.first], lower[column.second], column.share);
    out[x] = std::clamp(std::lerp(top, bottom, row.share), 0.0f, 1.0f);
  }
}

// How much of a pixel the line covers: its distance from the line is estimated from the slope.
float line_share(float heat, float right, float below, float thickness) {
  const float slope = std::hypot(right - heat, below - heat);
  if (slope <= 0) return 0;
  return std::clamp(thickness / 2 + 0.5f - std::abs(heat - line_level) / slope, 0.0f, 1.0f);
}

}  // namespace

Image render_heat(const Image& photo, const HeatMap& heat) {
  check(photo.height > 0 && photo.width > 0, "[heat] expected a photograph, got an empty image");
  check(heat.height > 0 && heat.width > 0 && std::ssize(heat.values) == heat.height * heat.width &&
            heat.covered_width > 0 && heat.covered_height > 0,
        "[heat] expected {} values for a map of {}x{} over a rectangle of pixels, got {} over {}x{}",
        heat.height * heat.width, heat.width, heat.height, heat.values.size(), heat.covered_width,
        heat.covered_height);
  const Image gray = to_gray(photo);
  Image result = make_image(photo.height, photo.width, 3);
  const std::vector<Position> columns =
      positions(photo.width, heat.width, heat.x, heat.covered_width, heat.mirrored);
  const std::vector<Position> rows = positions(photo.height, heat.height, heat.y, heat.covered_height, false);
  const float thickness = std::max(1.5f, static_cast<float>(std::min(photo.height, photo.width)) / 150);
  parallel_for(photo.height, 16, [&](int64_t begin, int64_t end) {
    std::vector<float> current(columns.size()), next(columns.size());
    heat_row(heat, rows[static_cast<size_t>(begin)], columns, next);
    for (int64_t y = begin; y < end; ++y) {
      current.swap(next);
      heat_row(heat, rows[static_cast<size_t>(std::min(y + 1, photo.height - 1))], columns, next);
      for (int64_t x = 0; x < photo.width; ++x) {
        const auto at = static_cast<size_t>(x);
        const auto level = static_cast<float>(gray.at(y, x));
        Rgb color{};
        if (rows[static_cast<size_t>(y)].covered && columns[at].covered) {
          color.fill(gray_offset + gray_scale * level);
          Rgb tint = color_of(current[at]);
          for (float& each : tint) each *= min_factor + (1 - min_factor) * level / 255;
          color = mixed(color, tint, max_opacity * std::sqrt(current[at]));
          const float right = current[std::min(at + 1, columns.size() - 1)];
          color = mixed(color, line_color, line_share(current[at], right, next[at], thickness));
        } else {
          color.fill(uncovered_scale * level);
        }
        for (int c = 0; c < 3; ++c)
          result.at(y, x, c) = static_cast<uint8_t>(color[static_cast<size_t>(c)] + 0.5f);
      }
    }
  });
  return result;
}

Image heat_scale(int64_t height, int64_t width) {
  Image gray = make_image(height, width, 1);
  std::ranges::fill(gray.pixels, uint8_t{128});
  // From the center of the first cell to that of the second.
  return render_heat(gray, {.height = 1,
                            .width = 2,
                            .values = {0, 1},
                            .x = -0.5 * static_cast<double>(width),
                            .y = 0,
                            .covered_width = 2 * static_cast<double>(width),
                            .covered_height = static_cast<double>(height)});
}

}  // namespace tandem
