// The scene of a plate: the table, the plate with its shape, shadow and decoration, and the light. The same
// for clean and for dirty plates.
#pragma once

#include <algorithm>

#include "tandem/data/synthetic/plates_canvas.h"

namespace tandem {

// A plate is a unit disc in its own plane, viewed at an angle.
struct Plate {
  Vec2 center;       // in pixels
  float radius = 0;  // in pixels, along the longer axis
  float flat = 1;    // ratio of the shorter axis to the longer one
  float cosine = 1, sine = 0;
  float well = 0.65f;  // radius of the inner, flat part, as a share of the plate's
  Rgb color;

  // Maps a point of the plate's plane to pixels.
  Vec2 to_pixels(Vec2 point) const {
    const float u = point.x * radius, v = point.y * radius * flat;
    return {center.x + cosine * u - sine * v, center.y + sine * u + cosine * v};
  }
};

void paint_table(Canvas& canvas, PlateRng& rng);
// Samples, paints and returns a plate.
Plate paint_plate(Canvas& canvas, const Light& light, PlateRng& rng);
Light sample_light(PlateRng& rng);

// Calls f(x, y, point) for the pixels of a square around `at` whose half side is `reach` (both in plate
// radii); `point` is the pixel's position in the plate's plane.
template <class F>
void for_pixels(const Canvas& canvas, const Plate& plate, Vec2 at, float reach, F&& f) {
  const Vec2 middle = plate.to_pixels(at);
  const float far = reach * plate.radius + 2;
  const float per_x = 1 / plate.radius, per_y = 1 / (plate.radius * plate.flat);
  const auto pixel = [&](float value) {
    return static_cast<int>(std::clamp(value, 0.0f, static_cast<float>(canvas.size())));
  };
  const int left = pixel(middle.x - far), right = pixel(middle.x + far + 1);
  for (int y = pixel(middle.y - far), end = pixel(middle.y + far + 1); y < end; ++y) {
    const float dy = static_cast<float>(y) - plate.center.y;
    const float along = plate.sine * dy, across = plate.cosine * dy;
    for (int x = left; x < right; ++x) {
      const float dx = static_cast<float>(x) - plate.center.x;
      f(x, y, Vec2{(plate.cosine * dx + along) * per_x, (across - plate.sine * dx) * per_y});
    }
  }
}

}  // namespace tandem
