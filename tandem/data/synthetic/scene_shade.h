// The color of a scene at a point, and what a view makes of it.
#pragma once

#include "tandem/data/synthetic/scene.h"
#include "tandem/data/synthetic/scene_bases.h"
#include "tandem/data/synthetic/scene_shapes.h"

namespace tandem::scenes {

// The color at a point, given the numbers of `count` parts, in order: those that cannot reach it may be left
// out.
template <class PartNumber>
constexpr Color color_at(const Scene& scene, float x, float y, int count, const PartNumber& part_number) {
  float left = 1, dark = 1;  // the light that passes the parts so far, and their shadows
  Color sum;
  for (int k = 0; k < count && left > 0.02f; ++k) {
    const int i = part_number(k);
    const Part& part = scene.part[i];
    const float dx = x - part.x, dy = y - part.y;
    const Point own{(part.cosine * dx + part.sine * dy) * part.inverse_width,
                    (part.cosine * dy - part.sine * dx) * part.inverse_height};
    const float r2 = own.x * own.x + own.y * own.y;
    if (r2 > Scene::max_reach * Scene::max_reach) continue;
    const std::uint32_t seed = scene.seed + static_cast<std::uint32_t>(i);
    const float distance = distance_to(scene, part, own.x, own.y, seed);
    if (distance > 0 && part.shadow > 0)
      dark *= 1 - part.shadow * exponential(-distance * 7) * smooth_step(1.65f, 1.2f, square_root(r2)) *
                      (dx * scene.light_x + dy * scene.light_y < 0 ? 1.0f : 0.25f);
    const float alpha = part.alpha * (1 - smooth_step(-part.softness, part.softness, distance));
    if (alpha < 0.004f) continue;
    const Color color = fill_at(scene, part, {x, y}, own, seed);
    float light = 1, shine = 0;
    if (part.relief != 0) light_part(scene, part, dx, dy, r2, light, shine);
    const float share = left * alpha * dark;
    sum.r += share * unit(color.r * light + shine);
    sum.g += share * unit(color.g * light + shine);
    sum.b += share * unit(color.b * light + shine);
    left *= 1 - alpha;
  }
  if (left > 0.02f) {
    const Color base = base_at(scene, x, y);
    sum = {sum.r + left * dark * base.r, sum.g + left * dark * base.g, sum.b + left * dark * base.b};
  }
  const float light =
      larger((1 + scene.slope_x * x + scene.slope_y * y) * (1 - scene.vignette * (x * x + y * y)), 0.1f);
  return scaled(sum, light);
}

// Where a view sees its point (u, v), each from −1 to 1.
constexpr Point seen_at(const View& view, float u, float v) {
  const float bent = 1 + view.lens * (u * u + v * v);
  const float x = u * view.width * bent, y = v * view.height * bent;
  return {view.x + view.cosine * x - view.sine * y, view.y + view.sine * x + view.cosine * y};
}

inline constexpr int samples_per_pixel = 4;

// The point of sample `s` of a pixel.
constexpr Point sample_point(const View& view, int column, int row, int s, float pixel_size) {
  const std::uint32_t h = hash(column * samples_per_pixel + s, row, view.seed);
  const float jitter_x = (static_cast<float>(h & 0xffff) * 0x1p-16f - 0.5f) * 0.25f,
              jitter_y = (static_cast<float>(h >> 16) * 0x1p-16f - 0.5f) * 0.25f;
  const float x = static_cast<float>(column) + 0.5f + view.blur * ((s & 1 ? 0.25f : -0.25f) + jitter_x),
              y = static_cast<float>(row) + 0.5f + view.blur * ((s & 2 ? 0.25f : -0.25f) + jitter_y);
  return seen_at(view, x * pixel_size - 1, y * pixel_size - 1);
}

// What the camera makes of the mean color of a pixel.
constexpr Color developed(const View& view, const Color& seen, int column, int row) {
  const auto exposed = [&](float value, float tint) {
    return (value * tint * view.gain - view.pivot) * view.contrast + view.pivot;
  };
  const Color c{exposed(seen.r, view.tint.r), exposed(seen.g, view.tint.g), exposed(seen.b, view.tint.b)};
  // Hue and saturation in YIQ.
  const float y = 0.299f * c.r + 0.587f * c.g + 0.114f * c.b, i = 0.596f * c.r - 0.274f * c.g - 0.322f * c.b,
              q = 0.211f * c.r - 0.523f * c.g + 0.312f * c.b;
  const float a = view.hue_cosine * view.saturation, b = view.hue_sine * view.saturation;
  const float i2 = a * i - b * q, q2 = b * i + a * q;
  std::uint32_t h = hash(column, row, view.seed ^ 77u);
  const auto finished = [&](float value) {
    h = hash(h, 1u, 2u);
    const auto byte = [&](int shift) { return static_cast<float>((h >> shift) & 255); };
    const float noise = (byte(0) + byte(8) + byte(16) + byte(24)) * (1.0f / 255) - 2;
    const float limited = unit(value);
    const float curve = view.gamma == 1 ? limited : power(limited + 1e-5f, view.gamma);
    return unit(curve + view.noise * 1.7f * noise);
  };
  const float r = finished(y + 0.956f * i2 + 0.621f * q2);
  const float g = finished(y - 0.272f * i2 - 0.647f * q2);
  return {r, g, finished(y - 1.106f * i2 + 1.703f * q2)};
}

}  // namespace tandem::scenes
