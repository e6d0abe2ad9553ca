#include "tandem/data/synthetic/plates_scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tandem {
namespace {

// A rotated grid: the coordinates of a pixel along its two axes, in periods.
struct Grid {
  float cosine, sine, period;

  Grid(PlateRng& rng, float period_pixels) : period(period_pixels) {
    const float turns = rng.unit();
    cosine = sine_of_turns(turns + 0.25f);
    sine = sine_of_turns(turns);
  }
  Vec2 at(int x, int y) const {
    const auto px = static_cast<float>(x), py = static_cast<float>(y);
    return {(cosine * px + sine * py) / period, (cosine * py - sine * px) / period};
  }
};

float fraction(float value) {
  return value - std::floor(value);
}

// A pseudo-random value in ±1 for a cell of a grid.
float cell_value(float a, float b) {
  const auto mixed = static_cast<std::uint32_t>(static_cast<std::int32_t>(a)) * 0x9E3779B9u ^
                     static_cast<std::uint32_t>(static_cast<std::int32_t>(b)) * 0x85EBCA6Bu;
  return static_cast<float>((mixed * 0xC2B2AE35u) >> 16) / 32767.5f - 1;
}

Rgb pick(std::span<const Rgb> colors, PlateRng& rng) {
  return colors[static_cast<std::size_t>(rng.below(static_cast<int>(colors.size())))];
}

template <class F>
void for_all(Canvas& canvas, F&& f) {
  for (int y = 0; y < canvas.size(); ++y)
    for (int x = 0; x < canvas.size(); ++x) f(x, y);
}

void set(Canvas& canvas, int x, int y, Rgb color) {
  canvas.red.row(y)[x] = color.red;
  canvas.green.row(y)[x] = color.green;
  canvas.blue.row(y)[x] = color.blue;
}

void paint_wood(Canvas& canvas, PlateRng& rng) {
  constexpr Rgb woods[] = {{0.55f, 0.36f, 0.20f}, {0.40f, 0.25f, 0.15f}, {0.72f, 0.55f, 0.36f},
                           {0.62f, 0.58f, 0.52f}, {0.30f, 0.22f, 0.17f}, {0.82f, 0.74f, 0.62f}};
  const Rgb base = rng.vary(pick(woods, rng), 0.2f);
  const float unit = canvas.unit();
  const bool upright = rng.chance(0.5f);
  const float plank = rng.between(70, 150) * unit, shift = rng.unit();
  Plane grain(canvas.size());
  for (const auto& [length, width, amount] :
       {std::array{160.0f, 9.0f, 0.5f}, std::array{70.0f, 4.0f, 0.35f}, std::array{30.0f, 2.0f, 0.25f}})
    grain.add_noise((upright ? width : length) * unit, (upright ? length : width) * unit, amount, rng);
  const float contrast = rng.between(0.1f, 0.26f), gap = 1.6f * unit / plank;
  for_all(canvas, [&](int x, int y) {
    const float across = static_cast<float>(upright ? x : y) / plank + shift;
    const float in_plank = fraction(across), edge = std::min(in_plank, 1 - in_plank);
    const float seam = smooth_step(0, gap, edge);
    const float level =
        1 + contrast * grain.row(y)[x] + 0.12f * cell_value(std::floor(across), 7) - 0.6f * (1 - seam);
    set(canvas, x, y, level * base);
    canvas.height.row(y)[x] = 1.2f * seam + 0.5f * grain.row(y)[x];
    canvas.gloss.row(y)[x] = 0.08f;
  });
}

void paint_cloth(Canvas& canvas, PlateRng& rng) {
  constexpr Rgb cloths[] = {{0.88f, 0.86f, 0.82f}, {0.25f, 0.33f, 0.50f}, {0.62f, 0.20f, 0.20f},
                            {0.35f, 0.48f, 0.36f}, {0.80f, 0.72f, 0.55f}, {0.30f, 0.30f, 0.33f}};
  const Rgb base = rng.vary(pick(cloths, rng), 0.15f), other = rng.vary(pick(cloths, rng), 0.15f);
  const int style = rng.below(3);  // plain, stripes, checks
  const float unit = canvas.unit();
  const Grid pattern(rng, rng.between(40, 100) * unit), weave(rng, 4.5f * unit);
  canvas.height.add_noise(150 * unit, 110 * unit, 7 * unit, rng);  // folds
  const float share = rng.between(0.25f, 0.8f);
  for_all(canvas, [&](int x, int y) {
    const Vec2 at = pattern.at(x, y), thread = weave.at(x, y);
    const float stripe = smooth_step(0.46f, 0.5f, std::fabs(fraction(at.x) - 0.5f) + 0.23f);
    const float check = smooth_step(0.46f, 0.5f, std::fabs(fraction(at.y) - 0.5f) + 0.23f);
    const float amount = style == 0 ? 0 : style == 1 ? stripe : 0.5f * (stripe + check);
    const float fibre =
        0.04f * (sine_of_turns(thread.x) + sine_of_turns(thread.y)) + 0.03f * canvas.grain.row(y)[x];
    set(canvas, x, y, (1 + fibre) * mix(base, other, share * amount));
    canvas.height.row(y)[x] += 0.25f * (sine_of_turns(thread.x) + sine_of_turns(thread.y));
  });
}

void paint_stone(Canvas& canvas, PlateRng& rng) {
  constexpr Rgb stones[] = {{0.30f, 0.31f, 0.33f}, {0.70f, 0.69f, 0.67f}, {0.86f, 0.85f, 0.84f},
                            {0.45f, 0.40f, 0.36f}, {0.20f, 0.22f, 0.24f}, {0.55f, 0.58f, 0.56f}};
  const Rgb base = rng.vary(pick(stones, rng), 0.15f);
  const float unit = canvas.unit();
  Plane cloud(canvas.size()), vein(canvas.size());
  for (const float cell : {90.0f, 30.0f, 10.0f})
    cloud.add_noise(cell * unit, cell * unit, 0.2f + cell / 300, rng);
  for (const float cell : {120.0f, 40.0f}) vein.add_noise(cell * unit, cell * unit, cell / 120, rng);
  const float contrast = rng.between(0.06f, 0.2f), veined = rng.chance(0.5f) ? rng.between(0.1f, 0.25f) : 0;
  const float speckle = rng.between(0, 0.1f), gloss = rng.between(0.02f, 0.3f);
  for_all(canvas, [&](int x, int y) {
    const float line = 1 - smooth_step(0, 0.06f, std::fabs(vein.row(y)[x]));
    const float level = 1 + contrast * cloud.row(y)[x] + speckle * canvas.grain.row(y)[x] + veined * line;
    set(canvas, x, y, level * base);
    canvas.height.row(y)[x] = 0.3f * canvas.grain.row(y)[x];
    canvas.gloss.row(y)[x] = gloss;
  });
}

void paint_tiles(Canvas& canvas, PlateRng& rng) {
  constexpr Rgb tiles[] = {{0.85f, 0.84f, 0.80f}, {0.35f, 0.50f, 0.58f}, {0.66f, 0.42f, 0.32f},
                           {0.55f, 0.60f, 0.52f}, {0.25f, 0.27f, 0.30f}, {0.75f, 0.66f, 0.52f}};
  const Rgb base = rng.vary(pick(tiles, rng), 0.15f);
  const Rgb grout = rng.vary({0.6f, 0.58f, 0.55f}, 0.3f);
  const float unit = canvas.unit(), period = rng.between(60, 150) * unit, joint = 2.5f * unit / period;
  const Grid grid(rng, period);
  const float variety = rng.between(0.02f, 0.15f);
  for_all(canvas, [&](int x, int y) {
    const Vec2 at = grid.at(x, y);
    const float in_x = fraction(at.x), in_y = fraction(at.y);
    const float edge = std::min(std::min(in_x, 1 - in_x), std::min(in_y, 1 - in_y));
    const float tile = smooth_step(joint, 1.6f * joint, edge);
    const float level =
        1 + variety * cell_value(std::floor(at.x), std::floor(at.y)) + 0.04f * canvas.grain.row(y)[x];
    set(canvas, x, y, mix(grout, level * base, tile));
    canvas.height.row(y)[x] = 2 * unit * smooth_step(joint, 4 * joint, edge);
    canvas.gloss.row(y)[x] = 0.3f * tile;
  });
}

// The height of the plate at a distance from its center, both in radii.
float profile(const Plate& plate, float distance) {
  const float wall = 0.05f * smooth_step(plate.well - 0.05f, plate.well + 0.06f, distance);
  const float rim = 0.05f * std::max(distance - plate.well, 0.0f);
  const float lip = 0.008f * smooth_step(0.95f, 0.975f, distance);
  return 0.03f + wall + rim + lip;
}

void paint_shadow(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const float length = 0.13f * rng.between(0.6f, 1.3f), depth = rng.between(0.35f, 0.65f);
  const Vec2 away{plate.center.x - light.x * length * 2 * plate.radius,
                  plate.center.y - light.y * length * 2 * plate.radius};
  Plate shadow = plate;
  shadow.center = away;
  for_pixels(canvas, shadow, {}, 1.2f, [&](int x, int y, Vec2 at) {
    const float distance = std::sqrt(at.x * at.x + at.y * at.y);
    const float dark = 1 - depth * (1 - smooth_step(0.82f, 1.14f, distance));
    canvas.red.row(y)[x] *= dark;
    canvas.green.row(y)[x] *= dark;
    canvas.blue.row(y)[x] *= dark;
  });
}

// A filled ellipse on the plate, around `at`, with its longer axis in the direction `along`.
void paint_petal(Canvas& canvas, const Plate& plate, Vec2 at, Vec2 along, float length, float width,
                 Rgb color, float share) {
  const float soft = 1.5f / plate.radius;
  for_pixels(canvas, plate, at, std::max(length, width), [&](int x, int y, Vec2 point) {
    const Vec2 off{point.x - at.x, point.y - at.y};
    const float u = (off.x * along.x + off.y * along.y) / length;
    const float v = (off.y * along.x - off.x * along.y) / width;
    const float distance = (std::sqrt(u * u + v * v) - 1) * std::min(length, width);
    canvas.blend(x, y, color, share * (1 - smooth_step(-soft, soft, distance)));
  });
}

void paint_flower(Canvas& canvas, const Plate& plate, Vec2 at, float size, Rgb petal, Rgb heart, int petals,
                  float turn, float share) {
  for (int i = 0; i < petals; ++i) {
    const float turns = turn + static_cast<float>(i) / static_cast<float>(petals);
    const Vec2 along{sine_of_turns(turns + 0.25f), sine_of_turns(turns)};
    paint_petal(canvas, plate, {at.x + 0.55f * size * along.x, at.y + 0.55f * size * along.y}, along,
                0.5f * size, 0.28f * size, petal, share);
  }
  paint_petal(canvas, plate, at, {1, 0}, 0.25f * size, 0.25f * size, heart, share);
}

void paint_decoration(Canvas& canvas, const Plate& plate, PlateRng& rng) {
  constexpr Rgb paints[] = {{0.16f, 0.27f, 0.55f}, {0.60f, 0.16f, 0.14f}, {0.20f, 0.42f, 0.24f},
                            {0.48f, 0.30f, 0.16f}, {0.78f, 0.60f, 0.20f}, {0.20f, 0.20f, 0.22f},
                            {0.20f, 0.50f, 0.55f}, {0.72f, 0.38f, 0.45f}};
  const Rgb first = rng.vary(pick(paints, rng), 0.15f), second = rng.vary(pick(paints, rng), 0.15f);
  const float rim_middle = 0.5f * (plate.well + 0.97f), rim_width = 0.97f - plate.well,
              soft = 1.5f / plate.radius;
  const auto ring = [&](float from, float to, Rgb color, float share) {
    for_pixels(canvas, plate, {}, 1, [&](int x, int y, Vec2 at) {
      const float distance = std::sqrt(at.x * at.x + at.y * at.y);
      if (distance < from - soft || distance > to + soft) return;
      const float inside = smooth_step(from - soft, from + soft, distance);
      canvas.blend(x, y, color, share * inside * (1 - smooth_step(to - soft, to + soft, distance)));
    });
  };
  const auto along_rim = [&](int count, auto&& paint) {
    const float start = rng.unit();
    for (int i = 0; i < count; ++i) {
      const float turns = start + static_cast<float>(i) / static_cast<float>(count);
      const Vec2 out{sine_of_turns(turns + 0.25f), sine_of_turns(turns)};
      paint(Vec2{rim_middle * out.x, rim_middle * out.y}, out, turns, i);
    }
  };
  const float ink = rng.between(0.3f, 0.65f);
  switch (rng.below(11)) {
    case 0:
    case 1:
    case 8:
    case 9:  // plain
      break;
    case 2:  // thin rings
      ring(0.95f, 0.985f, first, 0.9f);
      if (rng.chance(0.6f)) ring(plate.well + 0.02f, plate.well + 0.04f, second, 0.8f);
      break;
    case 3:  // a colored rim
      ring(plate.well + 0.05f, 1.02f, first, rng.between(0.5f, 0.95f));
      break;
    case 4:  // dots
      along_rim(12 + rng.below(16), [&](Vec2 at, Vec2, float, int i) {
        paint_petal(canvas, plate, at, {1, 0}, 0.14f * rim_width, 0.14f * rim_width, i % 2 ? first : second,
                    ink);
      });
      break;
    case 5:  // flowers and leaves
      along_rim(2 * (3 + rng.below(5)), [&](Vec2 at, Vec2 out, float turns, int i) {
        if (i % 2 == 0)
          paint_flower(canvas, plate, at, 0.36f * rim_width, first, second, 5, turns, ink);
        else
          paint_petal(canvas, plate, at, {-out.y, out.x}, 0.3f * rim_width, 0.1f * rim_width,
                      {0.25f, 0.45f, 0.25f}, ink);
      });
      break;
    case 6:  // strokes across the rim
      along_rim(16 + rng.below(24), [&](Vec2 at, Vec2 out, float, int) {
        paint_petal(canvas, plate, at, out, 0.34f * rim_width, 0.07f * rim_width, first, ink);
      });
      break;
    default: {  // a flower in the middle, and a ring
      const float size = rng.between(0.14f, 0.3f), turn = rng.unit();
      paint_flower(canvas, plate, {}, size, first, second, 5 + rng.below(4), turn, ink);
      ring(0.95f, 0.985f, first, 0.9f);
    }
  }
}

}  // namespace

void paint_table(Canvas& canvas, PlateRng& rng) {
  const float unit = canvas.unit();
  for (const float cell : {6.0f, 3.0f, 1.5f}) canvas.grain.add_noise(cell * unit, cell * unit, 0.5f, rng);
  switch (rng.below(4)) {
    case 0:
      return paint_wood(canvas, rng);
    case 1:
      return paint_cloth(canvas, rng);
    case 2:
      return paint_stone(canvas, rng);
    default:
      return paint_tiles(canvas, rng);
  }
}

Plate paint_plate(Canvas& canvas, const Light& light, PlateRng& rng) {
  constexpr Rgb glazes[] = {{0.93f, 0.93f, 0.92f}, {0.93f, 0.93f, 0.92f}, {0.93f, 0.93f, 0.92f},
                            {0.90f, 0.86f, 0.76f}, {0.90f, 0.86f, 0.76f}, {0.72f, 0.80f, 0.86f},
                            {0.74f, 0.82f, 0.76f}, {0.86f, 0.78f, 0.78f}, {0.80f, 0.66f, 0.55f},
                            {0.48f, 0.54f, 0.62f}};
  const auto size = static_cast<float>(canvas.size());
  const float turns = rng.unit();
  Plate plate{.radius = size * rng.between(0.36f, 0.47f),
              .flat = rng.between(0.78f, 1),
              .cosine = sine_of_turns(turns + 0.25f),
              .sine = sine_of_turns(turns),
              .well = rng.between(0.6f, 0.76f),
              .color = rng.vary(pick(glazes, rng), 0.1f)};
  plate.center = {size * (0.5f + 0.03f * rng.approx_normal()), size * (0.5f + 0.03f * rng.approx_normal())};
  paint_shadow(canvas, plate, light, rng);
  const float soft = 1.2f / plate.radius, gloss = rng.between(0.15f, 0.5f), mottle = rng.between(0, 0.04f);
  for_pixels(canvas, plate, {}, 1, [&](int x, int y, Vec2 at) {
    const float distance = std::sqrt(at.x * at.x + at.y * at.y);
    const float share = 1 - smooth_step(1 - soft, 1 + soft, distance);
    if (share == 0) return;
    canvas.blend(x, y, (1 + mottle * canvas.grain.row(y)[x]) * plate.color, share);
    float& height = canvas.height.row(y)[x];
    height += (profile(plate, distance) * plate.radius - height) * share;
    float& shine = canvas.gloss.row(y)[x];
    shine += (gloss - shine) * share;
  });
  paint_decoration(canvas, plate, rng);
  return plate;
}

Light sample_light(PlateRng& rng) {
  const float turns = rng.unit(), low = rng.between(0.35f, 0.75f);
  const float warmth = 0.12f * rng.approx_normal() * 0.5f, level = rng.between(0.75f, 1.08f);
  return {.x = low * sine_of_turns(turns + 0.25f),
          .y = low * sine_of_turns(turns),
          .z = std::sqrt(1 - low * low),
          .color = {level * (1 + warmth), level, level * (1 - warmth)},
          .ambient = rng.between(0.3f, 0.55f),
          .vignette = rng.between(0, 0.2f),
          .blur = rng.between(0.05f, 0.24f),
          .noise = rng.between(0.005f, 0.035f)};
}

}  // namespace tandem
