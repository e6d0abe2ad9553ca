#include "tandem/data/plates_scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tandem {
namespace {

// A turned grid: how far along two axes a pixel lies, in periods.
struct Grid {
  float cosine, sine, period;

  Grid(PlateDraws& draws, float period_pixels) : period(period_pixels) {
    const float turns = draws.unit();
    cosine = wave(turns + 0.25f);
    sine = wave(turns);
  }
  Spot at(int x, int y) const {
    const auto px = static_cast<float>(x), py = static_cast<float>(y);
    return {(cosine * px + sine * py) / period, (cosine * py - sine * px) / period};
  }
};

float fraction(float value) {
  return value - std::floor(value);
}

// A number of ±1 that belongs to a cell of a grid.
float cell_value(float a, float b) {
  const auto mixed = static_cast<std::uint32_t>(static_cast<std::int32_t>(a)) * 0x9E3779B9u ^
                     static_cast<std::uint32_t>(static_cast<std::int32_t>(b)) * 0x85EBCA6Bu;
  return static_cast<float>((mixed * 0xC2B2AE35u) >> 16) / 32767.5f - 1;
}

Rgb pick(std::span<const Rgb> colours, PlateDraws& draws) {
  return colours[static_cast<std::size_t>(draws.below(static_cast<int>(colours.size())))];
}

template <class F>
void for_all(Canvas& canvas, F&& f) {
  for (int y = 0; y < canvas.size(); ++y)
    for (int x = 0; x < canvas.size(); ++x) f(x, y);
}

void set(Canvas& canvas, int x, int y, Rgb colour) {
  canvas.red.row(y)[x] = colour.red;
  canvas.green.row(y)[x] = colour.green;
  canvas.blue.row(y)[x] = colour.blue;
}

void paint_wood(Canvas& canvas, PlateDraws& draws) {
  constexpr Rgb woods[] = {{0.55f, 0.36f, 0.20f}, {0.40f, 0.25f, 0.15f}, {0.72f, 0.55f, 0.36f},
                           {0.62f, 0.58f, 0.52f}, {0.30f, 0.22f, 0.17f}, {0.82f, 0.74f, 0.62f}};
  const Rgb base = draws.around(pick(woods, draws), 0.2f);
  const float unit = canvas.unit();
  const bool upright = draws.chance(0.5f);
  const float plank = draws.between(70, 150) * unit, shift = draws.unit();
  Plane grain(canvas.size());
  for (const auto& [length, width, amount] :
       {std::array{160.0f, 9.0f, 0.5f}, std::array{70.0f, 4.0f, 0.35f}, std::array{30.0f, 2.0f, 0.25f}})
    grain.add_noise((upright ? width : length) * unit, (upright ? length : width) * unit, amount, draws);
  const float contrast = draws.between(0.1f, 0.26f), gap = 1.6f * unit / plank;
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

void paint_cloth(Canvas& canvas, PlateDraws& draws) {
  constexpr Rgb cloths[] = {{0.88f, 0.86f, 0.82f}, {0.25f, 0.33f, 0.50f}, {0.62f, 0.20f, 0.20f},
                            {0.35f, 0.48f, 0.36f}, {0.80f, 0.72f, 0.55f}, {0.30f, 0.30f, 0.33f}};
  const Rgb base = draws.around(pick(cloths, draws), 0.15f), other = draws.around(pick(cloths, draws), 0.15f);
  const int style = draws.below(3);  // plain, stripes, checks
  const float unit = canvas.unit();
  const Grid pattern(draws, draws.between(40, 100) * unit), weave(draws, 4.5f * unit);
  canvas.height.add_noise(150 * unit, 110 * unit, 7 * unit, draws);  // folds
  const float share = draws.between(0.25f, 0.8f);
  for_all(canvas, [&](int x, int y) {
    const Spot at = pattern.at(x, y), thread = weave.at(x, y);
    const float stripe = smooth_step(0.46f, 0.5f, std::fabs(fraction(at.x) - 0.5f) + 0.23f);
    const float check = smooth_step(0.46f, 0.5f, std::fabs(fraction(at.y) - 0.5f) + 0.23f);
    const float amount = style == 0 ? 0 : style == 1 ? stripe : 0.5f * (stripe + check);
    const float fibre = 0.04f * (wave(thread.x) + wave(thread.y)) + 0.03f * canvas.grain.row(y)[x];
    set(canvas, x, y, (1 + fibre) * mix(base, other, share * amount));
    canvas.height.row(y)[x] += 0.25f * (wave(thread.x) + wave(thread.y));
  });
}

void paint_stone(Canvas& canvas, PlateDraws& draws) {
  constexpr Rgb stones[] = {{0.30f, 0.31f, 0.33f}, {0.70f, 0.69f, 0.67f}, {0.86f, 0.85f, 0.84f},
                            {0.45f, 0.40f, 0.36f}, {0.20f, 0.22f, 0.24f}, {0.55f, 0.58f, 0.56f}};
  const Rgb base = draws.around(pick(stones, draws), 0.15f);
  const float unit = canvas.unit();
  Plane cloud(canvas.size()), vein(canvas.size());
  for (const float cell : {90.0f, 30.0f, 10.0f})
    cloud.add_noise(cell * unit, cell * unit, 0.2f + cell / 300, draws);
  for (const float cell : {120.0f, 40.0f}) vein.add_noise(cell * unit, cell * unit, cell / 120, draws);
  const float contrast = draws.between(0.06f, 0.2f),
              veined = draws.chance(0.5f) ? draws.between(0.1f, 0.25f) : 0;
  const float speckle = draws.between(0, 0.1f), gloss = draws.between(0.02f, 0.3f);
  for_all(canvas, [&](int x, int y) {
    const float line = 1 - smooth_step(0, 0.06f, std::fabs(vein.row(y)[x]));
    const float level = 1 + contrast * cloud.row(y)[x] + speckle * canvas.grain.row(y)[x] + veined * line;
    set(canvas, x, y, level * base);
    canvas.height.row(y)[x] = 0.3f * canvas.grain.row(y)[x];
    canvas.gloss.row(y)[x] = gloss;
  });
}

void paint_tiles(Canvas& canvas, PlateDraws& draws) {
  constexpr Rgb tiles[] = {{0.85f, 0.84f, 0.80f}, {0.35f, 0.50f, 0.58f}, {0.66f, 0.42f, 0.32f},
                           {0.55f, 0.60f, 0.52f}, {0.25f, 0.27f, 0.30f}, {0.75f, 0.66f, 0.52f}};
  const Rgb base = draws.around(pick(tiles, draws), 0.15f);
  const Rgb grout = draws.around({0.6f, 0.58f, 0.55f}, 0.3f);
  const float unit = canvas.unit(), period = draws.between(60, 150) * unit, joint = 2.5f * unit / period;
  const Grid grid(draws, period);
  const float variety = draws.between(0.02f, 0.15f);
  for_all(canvas, [&](int x, int y) {
    const Spot at = grid.at(x, y);
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

// How high the plate stands at a distance from its middle, in radii.
float profile(const Plate& plate, float distance) {
  const float wall = 0.05f * smooth_step(plate.well - 0.05f, plate.well + 0.06f, distance);
  const float rim = 0.05f * std::max(distance - plate.well, 0.0f);
  const float lip = 0.008f * smooth_step(0.95f, 0.975f, distance);
  return 0.03f + wall + rim + lip;
}

void paint_shadow(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const float length = 0.13f * draws.between(0.6f, 1.3f), depth = draws.between(0.35f, 0.65f);
  const Spot away{plate.centre.x - light.x * length * 2 * plate.radius,
                  plate.centre.y - light.y * length * 2 * plate.radius};
  Plate shadow = plate;
  shadow.centre = away;
  for_pixels(canvas, shadow, {}, 1.2f, [&](int x, int y, Spot at) {
    const float distance = std::sqrt(at.x * at.x + at.y * at.y);
    const float dark = 1 - depth * (1 - smooth_step(0.82f, 1.14f, distance));
    canvas.red.row(y)[x] *= dark;
    canvas.green.row(y)[x] *= dark;
    canvas.blue.row(y)[x] *= dark;
  });
}

// A filled circle or a petal on the plate: an ellipse around `at`, its longer axis along `along`.
void paint_petal(Canvas& canvas, const Plate& plate, Spot at, Spot along, float length, float width,
                 Rgb colour, float share) {
  const float soft = 1.5f / plate.radius;
  for_pixels(canvas, plate, at, std::max(length, width), [&](int x, int y, Spot spot) {
    const Spot off{spot.x - at.x, spot.y - at.y};
    const float u = (off.x * along.x + off.y * along.y) / length;
    const float v = (off.y * along.x - off.x * along.y) / width;
    const float distance = (std::sqrt(u * u + v * v) - 1) * std::min(length, width);
    canvas.blend(x, y, colour, share * (1 - smooth_step(-soft, soft, distance)));
  });
}

void paint_flower(Canvas& canvas, const Plate& plate, Spot at, float size, Rgb petal, Rgb heart, int petals,
                  float turn, float share) {
  for (int i = 0; i < petals; ++i) {
    const float turns = turn + static_cast<float>(i) / static_cast<float>(petals);
    const Spot along{wave(turns + 0.25f), wave(turns)};
    paint_petal(canvas, plate, {at.x + 0.55f * size * along.x, at.y + 0.55f * size * along.y}, along,
                0.5f * size, 0.28f * size, petal, share);
  }
  paint_petal(canvas, plate, at, {1, 0}, 0.25f * size, 0.25f * size, heart, share);
}

void paint_decoration(Canvas& canvas, const Plate& plate, PlateDraws& draws) {
  constexpr Rgb paints[] = {{0.16f, 0.27f, 0.55f}, {0.60f, 0.16f, 0.14f}, {0.20f, 0.42f, 0.24f},
                            {0.48f, 0.30f, 0.16f}, {0.78f, 0.60f, 0.20f}, {0.20f, 0.20f, 0.22f},
                            {0.20f, 0.50f, 0.55f}, {0.72f, 0.38f, 0.45f}};
  const Rgb first = draws.around(pick(paints, draws), 0.15f),
            second = draws.around(pick(paints, draws), 0.15f);
  const float rim_middle = 0.5f * (plate.well + 0.97f), rim_width = 0.97f - plate.well,
              soft = 1.5f / plate.radius;
  const auto ring = [&](float from, float to, Rgb colour, float share) {
    for_pixels(canvas, plate, {}, 1, [&](int x, int y, Spot at) {
      const float distance = std::sqrt(at.x * at.x + at.y * at.y);
      if (distance < from - soft || distance > to + soft) return;
      const float inside = smooth_step(from - soft, from + soft, distance);
      canvas.blend(x, y, colour, share * inside * (1 - smooth_step(to - soft, to + soft, distance)));
    });
  };
  const auto around_rim = [&](int count, auto&& draw) {
    const float start = draws.unit();
    for (int i = 0; i < count; ++i) {
      const float turns = start + static_cast<float>(i) / static_cast<float>(count);
      const Spot out{wave(turns + 0.25f), wave(turns)};
      draw(Spot{rim_middle * out.x, rim_middle * out.y}, out, turns, i);
    }
  };
  const float ink = draws.between(0.3f, 0.65f);
  switch (draws.below(11)) {
    case 0:
    case 1:
    case 8:
    case 9:  // plain
      break;
    case 2:  // thin rings
      ring(0.95f, 0.985f, first, 0.9f);
      if (draws.chance(0.6f)) ring(plate.well + 0.02f, plate.well + 0.04f, second, 0.8f);
      break;
    case 3:  // a coloured rim
      ring(plate.well + 0.05f, 1.02f, first, draws.between(0.5f, 0.95f));
      break;
    case 4:  // dots
      around_rim(12 + draws.below(16), [&](Spot at, Spot, float, int i) {
        paint_petal(canvas, plate, at, {1, 0}, 0.14f * rim_width, 0.14f * rim_width, i % 2 ? first : second,
                    ink);
      });
      break;
    case 5:  // flowers and leaves
      around_rim(2 * (3 + draws.below(5)), [&](Spot at, Spot out, float turns, int i) {
        if (i % 2 == 0)
          paint_flower(canvas, plate, at, 0.36f * rim_width, first, second, 5, turns, ink);
        else
          paint_petal(canvas, plate, at, {-out.y, out.x}, 0.3f * rim_width, 0.1f * rim_width,
                      {0.25f, 0.45f, 0.25f}, ink);
      });
      break;
    case 6:  // strokes across the rim
      around_rim(16 + draws.below(24), [&](Spot at, Spot out, float, int) {
        paint_petal(canvas, plate, at, out, 0.34f * rim_width, 0.07f * rim_width, first, ink);
      });
      break;
    default: {  // a flower in the middle, and a ring
      const float size = draws.between(0.14f, 0.3f), turn = draws.unit();
      paint_flower(canvas, plate, {}, size, first, second, 5 + draws.below(4), turn, ink);
      ring(0.95f, 0.985f, first, 0.9f);
    }
  }
}

}  // namespace

void paint_table(Canvas& canvas, PlateDraws& draws) {
  const float unit = canvas.unit();
  for (const float cell : {6.0f, 3.0f, 1.5f}) canvas.grain.add_noise(cell * unit, cell * unit, 0.5f, draws);
  switch (draws.below(4)) {
    case 0:
      return paint_wood(canvas, draws);
    case 1:
      return paint_cloth(canvas, draws);
    case 2:
      return paint_stone(canvas, draws);
    default:
      return paint_tiles(canvas, draws);
  }
}

Plate paint_plate(Canvas& canvas, const Light& light, PlateDraws& draws) {
  constexpr Rgb glazes[] = {{0.93f, 0.93f, 0.92f}, {0.93f, 0.93f, 0.92f}, {0.93f, 0.93f, 0.92f},
                            {0.90f, 0.86f, 0.76f}, {0.90f, 0.86f, 0.76f}, {0.72f, 0.80f, 0.86f},
                            {0.74f, 0.82f, 0.76f}, {0.86f, 0.78f, 0.78f}, {0.80f, 0.66f, 0.55f},
                            {0.48f, 0.54f, 0.62f}};
  const auto size = static_cast<float>(canvas.size());
  const float turns = draws.unit();
  Plate plate{.radius = size * draws.between(0.36f, 0.47f),
              .flat = draws.between(0.78f, 1),
              .cosine = wave(turns + 0.25f),
              .sine = wave(turns),
              .well = draws.between(0.6f, 0.76f),
              .colour = draws.around(pick(glazes, draws), 0.1f)};
  plate.centre = {size * (0.5f + 0.03f * draws.bell()), size * (0.5f + 0.03f * draws.bell())};
  paint_shadow(canvas, plate, light, draws);
  const float soft = 1.2f / plate.radius, gloss = draws.between(0.15f, 0.5f),
              mottle = draws.between(0, 0.04f);
  for_pixels(canvas, plate, {}, 1, [&](int x, int y, Spot at) {
    const float distance = std::sqrt(at.x * at.x + at.y * at.y);
    const float share = 1 - smooth_step(1 - soft, 1 + soft, distance);
    if (share == 0) return;
    canvas.blend(x, y, (1 + mottle * canvas.grain.row(y)[x]) * plate.colour, share);
    float& height = canvas.height.row(y)[x];
    height += (profile(plate, distance) * plate.radius - height) * share;
    float& shine = canvas.gloss.row(y)[x];
    shine += (gloss - shine) * share;
  });
  paint_decoration(canvas, plate, draws);
  return plate;
}

Light draw_light(PlateDraws& draws) {
  const float turns = draws.unit(), low = draws.between(0.35f, 0.75f);
  const float warmth = 0.12f * draws.bell() * 0.5f, level = draws.between(0.75f, 1.08f);
  return {.x = low * wave(turns + 0.25f),
          .y = low * wave(turns),
          .z = std::sqrt(1 - low * low),
          .colour = {level * (1 + warmth), level, level * (1 - warmth)},
          .ambient = draws.between(0.3f, 0.55f),
          .vignette = draws.between(0, 0.2f),
          .blur = draws.between(0.05f, 0.24f),
          .noise = draws.between(0.005f, 0.035f)};
}

}  // namespace tandem
