// How scenes become pixels, one square tile of a picture at a time.
#pragma once

#include <cstdint>

#include "tandem/data/synthetic/scene_sample.h"
#include "tandem/data/synthetic/scene_shade.h"

namespace tandem::scenes {

// Views of scenes: pictures of size × size pixels.
struct Request {
  std::uint64_t seed = 0;
  int scenes = 0;
  int views = 1;  // of each scene
  int size = 0;
  bool whole = false;  // views show the whole scene as it is
  ViewOptions view;
  KindShares kinds;
};

inline constexpr int tile_side = 28;

constexpr int tiles_per_side(int size) {
  return (size + tile_side - 1) / tile_side;
}

constexpr SceneKey key_of(const Request& request, std::int64_t index) {
  return {request.seed, static_cast<std::uint64_t>(index)};
}

constexpr void make_view(View& view, const Request& request, const SceneKey& key, int number) {
  view = {};
  if (request.whole)
    view.seed = static_cast<std::uint32_t>(number);
  else
    sample_view(view, key, number, request.view);
}

// A circle around everything that a tile sees.
struct TileCircle {
  Point center;
  float radius;
};

constexpr TileCircle circle_of(const View& view, int tile_x, int tile_y, int size) {
  const float pixel = 2.0f / static_cast<float>(size);
  const float half = 0.5f * static_cast<float>(tile_side) * pixel + view.blur * pixel;
  const float u = (static_cast<float>(tile_x) + 0.5f) * static_cast<float>(tile_side) * pixel - 1,
              v = (static_cast<float>(tile_y) + 0.5f) * static_cast<float>(tile_side) * pixel - 1;
  const float reach = 1.4142136f * half;
  const float far = larger(magnitude(u), magnitude(v)) + half;  // r² of the lens is at most twice its square
  const float stretch = 1 + 3 * magnitude(view.lens) * 2 * far * far;
  return {seen_at(view, u, v), reach * stretch * larger(magnitude(view.width), magnitude(view.height))};
}

constexpr bool reaches(const Part& part, const TileCircle& circle) {
  const float reach = Scene::max_reach / smaller(part.inverse_width, part.inverse_height) + circle.radius;
  const float dx = part.x - circle.center.x, dy = part.y - circle.center.y;
  return dx * dx + dy * dy <= reach * reach;
}

// A sample of a pixel, given the parts that reach its tile.
constexpr Color sample_of(const Scene& scene, const View& view, int column, int row, int sample, int size,
                          int count, const std::uint8_t* parts) {
  const Point at = sample_point(view, column, row, sample, 2.0f / static_cast<float>(size));
  return color_at(scene, at.x, at.y, count, [parts](int i) { return static_cast<int>(parts[i]); });
}

// The pixel of a view, given the sum of its samples.
constexpr Color pixel_of(const View& view, const Color& sum, int column, int row) {
  return developed(view, scaled(sum, 1.0f / samples_per_pixel), column, row);
}

constexpr std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(value * 255 + 0.5f);
}

}  // namespace tandem::scenes
