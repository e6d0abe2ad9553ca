// Parts of scenes: their outlines, fills and light. Distances are below 0 inside, and about those from the
// outline near it.
#pragma once

#include "tandem/data/synthetic/scene.h"
#include "tandem/data/synthetic/scene_pattern.h"

namespace tandem::scenes {

// The thickness of a cluster falls off softly from its members, which flow into each other.
constexpr float cluster_distance(const Scene& scene, const Part& part, float x, float y) {
  float total = 0;
  for (int i = 0; i < part.members; ++i) {
    const Member& m = scene.member[part.first_member + i];
    const float dx = m.x1 - m.x0, dy = m.y1 - m.y0;
    const float t = unit(((x - m.x0) * dx + (y - m.y0) * dy) / (dx * dx + dy * dy + 1e-6f));
    const float px = x - m.x0 - t * dx, py = y - m.y0 - t * dy;
    total += exponential(part.p0 * (1 - length(px, py) / m.radius));
  }
  return logarithm(total + 1e-9f) / -part.p0;
}

constexpr float distance_to(const Scene& scene, const Part& part, float x, float y, std::uint32_t seed) {
  const float r = length(x, y);
  switch (part.shape) {
    case Shape::ellipse:
      return r - 1;
    case Shape::box:
      return larger(magnitude(x), magnitude(y)) - 0.85f;
    case Shape::superellipse: {
      const float n = part.p0;
      return power(power(magnitude(x) + 1e-5f, n) + power(magnitude(y) + 1e-5f, n), 1 / n) - 0.95f;
    }
    case Shape::polygon: {
      const float sector = tau / part.p0;
      float a = angle_of(y, x);
      a = a - sector * static_cast<float>(round_of(a / sector));
      return r * cosine(a) - 0.85f;
    }
    case Shape::flower:
      return r - (1 + part.p1 * cosine(part.p0 * angle_of(y, x))) / (1 + 0.5f * part.p1);
    case Shape::bean: {
      const float a = angle_of(y, x);
      return r - 0.85f * (1 + part.p1 * cosine(2 * a + part.p0) + part.p2 * cosine(3 * a + 2 * part.p0) +
                          0.6f * part.p2 * cosine(5 * a + 5 * part.p0));
    }
    case Shape::ring:
      return magnitude(r - (1 - part.p2)) - part.p2;
    case Shape::wave:
      return larger(magnitude(y - part.p0 * sine(part.p1 * x)) - part.p2, magnitude(x) - 0.95f);
    case Shape::crescent:
      return larger(part.p1 - length(x - part.p0, y), r - 1);
    case Shape::rough:
      return r - 0.75f + part.p2 * value_noise(x * part.p1 + part.p0, y * part.p1, seed) +
             0.4f * part.p2 * value_noise(x * 2.3f * part.p1, y * 2.3f * part.p1 + part.p0, seed);
    case Shape::capsule: {
      const float t = clamp(x, -1, 1);
      return length(x - t, y) - mix(part.p0, part.p1, 0.5f + 0.5f * t);
    }
    case Shape::arc: {  // of a circle of radius 0.9, from the right on, p0 to each side
      const float a = angle_of(y, x);
      const float c = cosine(part.p0), s = sine(part.p0);
      const float d = magnitude(a) < part.p0 ? magnitude(r - 0.9f)
                                             : length(x - 0.9f * c, magnitude(y) - 0.9f * magnitude(s));
      return d - part.p1;
    }
    default:
      return cluster_distance(scene, part, x, y);
  }
}

constexpr Color fill_at(const Scene& scene, const Part& part, Point at, Point own, std::uint32_t seed) {
  const auto blend = [&](float t) { return mix(part.color, part.second, unit(t)); };
  const float r2 = own.x * own.x + own.y * own.y;
  switch (part.fill) {
    case Fill::plain:
      return part.color;
    case Fill::gradient:
      return blend(0.5f + 0.5f * own.y);
    case Fill::radial:
      return blend(r2);
    case Fill::scene_pattern:
      return color_at(scene.pattern[1], at.x, at.y);
    case Fill::own_pattern:
      return color_at(scene.pattern[2], own.x, own.y);
    case Fill::noise:
      return blend(0.5f + fractal_noise((at.x - part.x) * part.texture, (at.y - part.y) * part.texture, seed,
                                        0.6f, false));
    case Fill::stripes:
      return blend(smooth_step(-0.3f, 0.3f, sine(own.x * part.texture * 1.5f)));
    case Fill::dots:
      return blend(smooth_step(0.2f, 0.6f, sine(own.x * part.texture) * sine(own.y * part.texture)));
    case Fill::rings:
      return blend(smooth_step(-0.4f, 0.4f, sine(square_root(r2) * part.texture * 1.5f)));
    default:  // tinted
      return mix(color_at(scene.pattern[1], own.x * 0.7f + part.p0, own.y * 0.7f), part.color, 0.5f);
  }
}

// The light on a dome (relief > 0) or a dish with a rim (relief < 0), and its highlight.
constexpr void light_part(const Scene& scene, const Part& part, float dx, float dy, float r2, float& light,
                          float& shine) {
  float nx = 0, ny = 0, nz = 1;
  if (part.relief > 0) {
    nz = square_root(larger(1 - r2, 0.04f));
    nx = dx * part.relief * part.inverse_width;
    ny = dy * part.relief * part.inverse_height;
  } else {
    const float r = square_root(r2), rim = r > 0.62f && r < 0.8f ? 0.5f : 0.0f;
    const float k = -part.relief * (sine(r * 7 - 1) * 0.6f + rim) * part.inverse_width / (r + 1e-3f);
    nx = -dx * k;
    ny = -dy * k;
  }
  const float facing = (nx * scene.light_x + ny * scene.light_y + nz * scene.light_z) /
                       square_root(nx * nx + ny * ny + nz * nz);
  light = 0.45f + 0.65f * larger(facing, 0);
  if (part.shine > 0 && facing > 0) shine = part.shine * power(facing, 24);
}

}  // namespace tandem::scenes
