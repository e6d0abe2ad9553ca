// The scene of a plate: the table it stands on, the plate with its shape, shadow and decoration, and the
// light. All of it is the same for clean and for dirty plates.
#pragma once

#include <algorithm>

#include "tandem/data/plates_canvas.h"

namespace tandem {

// A plate is a unit disc in its own plane, seen at an angle.
struct Plate {
  Spot centre;       // in pixels
  float radius = 0;  // in pixels, along the longer axis
  float flat = 1;    // the shorter axis over the longer one
  float cosine = 1, sine = 0;
  float well = 0.65f;  // the inner, flat part, as a share of the radius
  Rgb colour;

  // The plate's plane → pixels.
  Spot outside(Spot spot) const {
    const float u = spot.x * radius, v = spot.y * radius * flat;
    return {centre.x + cosine * u - sine * v, centre.y + sine * u + cosine * v};
  }
};

void paint_table(Canvas& canvas, PlateDraws& draws);
// Draws, paints and returns a plate.
Plate paint_plate(Canvas& canvas, const Light& light, PlateDraws& draws);
Light draw_light(PlateDraws& draws);

// Calls f(x, y, spot) for the pixels of the square of that half side (in plate radii) around a spot, each
// with its own place in the plate's plane.
template <class F>
void for_pixels(const Canvas& canvas, const Plate& plate, Spot at, float reach, F&& f) {
  const Spot middle = plate.outside(at);
  const float far = reach * plate.radius + 2;
  const float per_x = 1 / plate.radius, per_y = 1 / (plate.radius * plate.flat);
  const auto pixel = [&](float value) {
    return static_cast<int>(std::clamp(value, 0.0f, static_cast<float>(canvas.size())));
  };
  const int left = pixel(middle.x - far), right = pixel(middle.x + far + 1);
  for (int y = pixel(middle.y - far), end = pixel(middle.y + far + 1); y < end; ++y) {
    const float dy = static_cast<float>(y) - plate.centre.y;
    const float along = plate.sine * dy, across = plate.cosine * dy;
    for (int x = left; x < right; ++x) {
      const float dx = static_cast<float>(x) - plate.centre.x;
      f(x, y, Spot{(plate.cosine * dx + along) * per_x, (across - plate.sine * dx) * per_y});
    }
  }
}

}  // namespace tandem
