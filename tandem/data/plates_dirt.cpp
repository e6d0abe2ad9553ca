#include "tandem/data/plates_dirt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tandem {
namespace {

constexpr Rgb sauces[] = {{0.62f, 0.14f, 0.08f},   // tomato
                          {0.36f, 0.20f, 0.10f},   // gravy
                          {0.75f, 0.52f, 0.12f},   // curry
                          {0.28f, 0.36f, 0.12f},   // pesto
                          {0.20f, 0.10f, 0.06f},   // chocolate
                          {0.45f, 0.08f, 0.20f},   // beetroot
                          {0.80f, 0.62f, 0.40f},   // cream with something in it
                          {0.55f, 0.32f, 0.14f}};  // stew
constexpr Rgb crusts[] = {
    {0.55f, 0.36f, 0.18f}, {0.40f, 0.24f, 0.12f}, {0.72f, 0.54f, 0.30f}, {0.25f, 0.15f, 0.09f}};
constexpr Rgb greens[] = {{0.30f, 0.46f, 0.14f}, {0.22f, 0.36f, 0.12f}, {0.45f, 0.55f, 0.20f}};

Rgb pick(std::span<const Rgb> colours, PlateDraws& draws) {
  return colours[static_cast<std::size_t>(draws.below(static_cast<int>(colours.size())))];
}

// Somewhere on the plate, rather near the middle.
Spot place(PlateDraws& draws, float reach) {
  const float turns = draws.unit(), distance = reach * std::sqrt(draws.unit());
  return {distance * wave(turns + 0.25f), distance * wave(turns)};
}

// What covers the plate where a shape is.
struct Stuff {
  Rgb colour;
  float share = 1;      // of the plate that it hides
  float thickness = 0;  // in pixels
  float gloss = 0.3f;
  float edge = 0;      // how much darker its border is: it dried from there
  float rough = 0.1f;  // of its colour
};

// A disc whose border swings in and out a few times: distance() is negative inside, in plate radii.
class Puddle {
 public:
  Puddle(Spot at, float radius, float swing, PlateDraws& draws)
      : at_(at), radius_(radius), reach_(radius * (1 + 2.2f * swing)) {
    const float turns = draws.unit(), longer = draws.between(1, 1.6f);
    along_ = {wave(turns + 0.25f), wave(turns)};
    stretch_ = longer;
    float most = 0.7f * swing;  // less and less for the faster ones
    for (Spot& one : swings_) {
      one = {most * draws.bell(), most * draws.bell()};
      most *= 0.62f;
    }
  }
  Spot at() const { return at_; }
  float reach() const { return reach_; }

  float distance(Spot spot) const {
    const Spot off{spot.x - at_.x, spot.y - at_.y};
    const float u = off.x * along_.x + off.y * along_.y, v = (off.y * along_.x - off.x * along_.y) * stretch_;
    const float length = std::sqrt(u * u + v * v) + 1e-6f;
    // The angle's multiples by products of (cosine, sine).
    const float cosine = u / length, sine = v / length;
    float c = cosine, s = sine, border = 1;
    for (const Spot& one : swings_) {
      const float next = c * cosine - s * sine;
      s = s * cosine + c * sine;
      c = next;
      border += one.x * c + one.y * s;
    }
    return length - radius_ * border;
  }

 private:
  Spot at_, along_;
  float radius_, reach_, stretch_ = 1;
  std::array<Spot, 5> swings_;
};

// One pixel of stuff, `distance` (in plate radii) from its border.
void put(Canvas& canvas, const Plate& plate, int x, int y, float distance, const Stuff& stuff, float share) {
  const float soft = 1.3f / plate.radius;
  const float cover = share * (1 - smooth_step(-soft, soft, distance));
  if (cover <= 0) return;
  const float pixels = -distance * plate.radius, unit = canvas.unit();
  const float near_border = 1 - smooth_step(0, 5 * unit, pixels);
  const float grain = canvas.grain.row(y)[x];
  const Rgb colour = (1 - stuff.edge * near_border + stuff.rough * grain) * stuff.colour;
  canvas.blend(x, y, colour, cover * std::min(stuff.share + stuff.edge * near_border, 1.0f));
  const float dome = smooth_step(0, 6 * unit, pixels);
  canvas.height.row(y)[x] += cover * stuff.thickness * (dome + 0.15f * stuff.rough * grain);
  float& gloss = canvas.gloss.row(y)[x];
  gloss += (stuff.gloss - gloss) * cover;
}

void paint_puddle(Canvas& canvas, const Plate& plate, const Puddle& puddle, const Stuff& stuff) {
  for_pixels(canvas, plate, puddle.at(), puddle.reach(),
             [&](int x, int y, Spot spot) { put(canvas, plate, x, y, puddle.distance(spot), stuff, 1); });
}

// The little shadow beside a thing that lies on the plate.
void paint_contact_shadow(Canvas& canvas, const Plate& plate, const Light& light, Spot at, float radius) {
  const Spot under{at.x - 0.45f * radius * light.x, at.y - 0.45f * radius * light.y};
  for_pixels(canvas, plate, under, 1.5f * radius, [&](int x, int y, Spot spot) {
    const float dx = spot.x - under.x, dy = spot.y - under.y;
    canvas.blend(x, y, {0.05f, 0.04f, 0.04f},
                 0.45f * (1 - smooth_step(0.7f * radius, 1.45f * radius, std::sqrt(dx * dx + dy * dy))));
  });
}

void paint_sauce(Canvas& canvas, const Plate& plate, Rgb colour, PlateDraws& draws) {
  const int count = 1 + draws.below(3);
  for (int i = 0; i < count; ++i) {
    const Stuff sauce{.colour = draws.around(colour, 0.12f),
                      .share = draws.between(0.7f, 1),
                      .thickness = draws.between(0.5f, 2.5f) * canvas.unit(),
                      .gloss = draws.between(0.2f, 0.7f),
                      .edge = draws.between(0.05f, 0.3f),
                      .rough = draws.between(0.03f, 0.15f)};
    const float radius = draws.between(0.2f, 0.42f);
    const Puddle puddle{place(draws, 0.45f), radius, draws.between(0.06f, 0.2f), draws};
    paint_puddle(canvas, plate, puddle, sauce);
    const int drops = draws.below(8);
    for (int drop = 0; drop < drops; ++drop) {
      const Spot off = place(draws, 2.2f * radius);
      const Spot at{puddle.at().x + off.x, puddle.at().y + off.y};
      paint_puddle(canvas, plate, Puddle(at, draws.between(0.01f, 0.035f), 0.15f, draws), sauce);
    }
  }
}

// A stroke along a bow, streaky across and fading along: what a knife, a finger or bread leaves.
void paint_smear(Canvas& canvas, const Plate& plate, Rgb colour, PlateDraws& draws) {
  const Spot from = place(draws, 0.5f);
  const float turns = draws.unit(), length = draws.between(0.4f, 0.9f),
              bow_out = draws.between(-0.25f, 0.25f);
  const Spot aim{length * wave(turns + 0.25f), length * wave(turns)}, to{from.x + aim.x, from.y + aim.y};
  const Spot bend{from.x + 0.5f * aim.x - bow_out * aim.y, from.y + 0.5f * aim.y + bow_out * aim.x};
  const float width = draws.between(0.07f, 0.18f), strength = draws.between(0.75f, 1.1f);
  const Stuff film{.colour = colour, .thickness = 0.6f * canvas.unit(), .gloss = 0.35f, .edge = 0.05f};
  constexpr int pieces = 20, streaks = 24;
  std::array<float, streaks + 1> streak{};
  for (float& one : streak) one = draws.between(0.15f, 1);
  const auto bow = [&](float t) {
    const float a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
    return Spot{a * from.x + b * bend.x + c * to.x, a * from.y + b * bend.y + c * to.y};
  };
  for (int i = 0; i < pieces; ++i) {
    const Spot a = bow(static_cast<float>(i) / pieces), b = bow(static_cast<float>(i + 1) / pieces);
    const Spot step{b.x - a.x, b.y - a.y};
    const float stride = std::sqrt(step.x * step.x + step.y * step.y) + 1e-6f;
    const Spot along{step.x / stride, step.y / stride};
    for_pixels(canvas, plate, {0.5f * (a.x + b.x), 0.5f * (a.y + b.y)}, width + stride,
               [&](int x, int y, Spot spot) {
                 const Spot off{spot.x - a.x, spot.y - a.y};
                 const float forward = (off.x * along.x + off.y * along.y) / stride;
                 if (forward < 0 || forward >= 1) return;  // another piece's
                 const float side = (off.y * along.x - off.x * along.y) / width;
                 if (side <= -1 || side >= 1 || spot.x * spot.x + spot.y * spot.y > 0.92f) return;
                 const float t = (static_cast<float>(i) + forward) / pieces;
                 const float at = (side + 1) * 0.5f * streaks;
                 const auto lane = static_cast<std::size_t>(at);
                 const float part = at - static_cast<float>(lane);
                 const float amount = streak[lane] + (streak[lane + 1] - streak[lane]) * part;
                 const float fade = (1 - t * t) * (1 - smooth_step(0.7f, 1, std::fabs(side)));
                 put(canvas, plate, x, y, -1, film,
                     std::clamp(strength * fade * (amount + 0.25f * canvas.grain.row(y)[x]), 0.0f, 1.0f));
               });
  }
}

void paint_crumbs(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const Rgb crust = pick(crusts, draws);
  const Spot middle = place(draws, 0.4f);
  const float spread = draws.between(0.2f, 0.6f);
  const int count = 50 + draws.below(70);
  for (int i = 0; i < count; ++i) {
    const Spot off = place(draws, spread);
    const Spot at{middle.x + off.x, middle.y + off.y};
    if (at.x * at.x + at.y * at.y > 0.9f) continue;
    const float size = draws.unit(), radius = 0.013f + 0.04f * size * size * size;
    if (radius > 0.012f) paint_contact_shadow(canvas, plate, light, at, radius);
    const Puddle crumb(at, radius, 0.35f, draws);
    paint_puddle(
        canvas, plate, crumb,
        {.colour = draws.around(crust, 0.14f), .thickness = 3 * canvas.unit(), .gloss = 0, .rough = 0.3f});
  }
}

void paint_peas(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const Rgb green = pick(greens, draws);
  const int count = 6 + draws.below(14);
  for (int i = 0; i < count; ++i) {
    const Spot at = place(draws, 0.6f);
    const float radius = draws.between(0.03f, 0.042f);
    paint_contact_shadow(canvas, plate, light, at, radius);
    const Puddle pea(at, radius, 0.04f, draws);
    paint_puddle(canvas, plate, pea,
                 {.colour = draws.around(green, 0.15f), .thickness = 5 * canvas.unit(), .gloss = 0.3f});
  }
}

// Noodles or grains of rice, by their length: round strokes.
void paint_strands(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const bool rice = draws.chance(0.5f);
  const Rgb colour = draws.around({0.86f, 0.76f, 0.52f}, 0.12f);
  const int count = rice ? 15 + draws.below(40) : 2 + draws.below(5);
  const float width = rice ? 0.011f : 0.016f;
  const Spot middle = place(draws, 0.35f);
  for (int i = 0; i < count; ++i) {
    const Spot off = place(draws, rice ? 0.4f : 0.25f);
    Spot at{middle.x + off.x, middle.y + off.y};
    float turns = draws.unit();
    const float bend = rice ? 0 : draws.between(-0.03f, 0.03f);
    const int pieces = rice ? 3 : 18 + draws.below(20);
    for (int piece = 0; piece < pieces; ++piece) {
      paint_contact_shadow(canvas, plate, light, at, width);
      const float step = 1.1f * width;
      turns += bend + 0.01f * draws.bell();
      at = {at.x + step * wave(turns + 0.25f), at.y + step * wave(turns)};
      if (at.x * at.x + at.y * at.y > 0.8f) break;
      paint_puddle(canvas, plate, Puddle(at, width, 0, draws),
                   {.colour = colour, .thickness = 2 * canvas.unit(), .gloss = 0.3f, .rough = 0.06f});
    }
  }
}

void paint_leaf(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const int count = 2 + draws.below(3);
  for (int i = 0; i < count; ++i) {
    const Spot at = place(draws, 0.6f);
    const float radius = draws.between(0.09f, 0.18f);
    paint_contact_shadow(canvas, plate, light, at, radius);
    const Puddle leaf(at, radius, 0.4f, draws);
    paint_puddle(canvas, plate, leaf,
                 {.colour = draws.around(pick(greens, draws), 0.2f),
                  .thickness = 4 * canvas.unit(),
                  .gloss = 0.2f,
                  .edge = 0.15f,
                  .rough = 0.25f});
  }
}

// The border of what was there and dried, with a thin film inside.
void paint_dried(Canvas& canvas, const Plate& plate, Rgb colour, PlateDraws& draws) {
  const int count = 1 + draws.below(2);
  for (int i = 0; i < count; ++i) {
    const Puddle puddle{place(draws, 0.3f), draws.between(0.2f, 0.5f), draws.between(0.08f, 0.2f), draws};
    const float inside = draws.between(0.2f, 0.4f), border = draws.between(0.5f, 0.8f);
    const float width = draws.between(0.015f, 0.035f);
    const Stuff film{.colour = colour, .gloss = 0.1f, .rough = 0.12f};
    for_pixels(canvas, plate, puddle.at(), puddle.reach(), [&](int x, int y, Spot spot) {
      const float distance = puddle.distance(spot);
      const float patchy = 0.7f + 0.4f * canvas.grain.row(y)[x];
      put(canvas, plate, x, y, distance, film,
          std::clamp(patchy * (inside + border * smooth_step(-2 * width, -0.5f * width, distance)), 0.0f,
                     1.0f));
    });
  }
}

void paint_grease(Canvas& canvas, const Plate& plate, PlateDraws& draws) {
  const Puddle puddle{place(draws, 0.25f), draws.between(0.3f, 0.55f), 0.2f, draws};
  Plane film(canvas.size());
  film.add_noise(14 * canvas.unit(), 14 * canvas.unit(), 0.9f * canvas.unit(), draws);
  for_pixels(canvas, plate, puddle.at(), puddle.reach(), [&](int x, int y, Spot spot) {
    const float cover = 1 - smooth_step(-0.04f, 0.02f, puddle.distance(spot));
    if (cover == 0) return;
    canvas.blend(x, y, {0.62f, 0.50f, 0.22f}, 0.2f * cover);
    canvas.height.row(y)[x] += cover * film.row(y)[x];
    canvas.gloss.row(y)[x] += 0.3f * cover;
  });
}

}  // namespace

void paint_dirt(Canvas& canvas, const Plate& plate, const Light& light, PlateDraws& draws) {
  const Rgb sauce = draws.around(pick(sauces, draws), 0.15f);
  if (draws.chance(0.35f)) paint_grease(canvas, plate, draws);
  if (draws.chance(0.5f)) paint_dried(canvas, plate, sauce, draws);
  const int main_thing = draws.below(4);  // this one is always there
  if (main_thing == 0 || draws.chance(0.6f)) paint_sauce(canvas, plate, sauce, draws);
  const int smears = main_thing == 1 ? 3 + draws.below(3) : 1 + draws.below(2);
  for (int i = 0; i < smears; ++i) paint_smear(canvas, plate, draws.around(sauce, 0.15f), draws);
  if (main_thing == 3 || draws.chance(0.25f)) {
    const int what = draws.below(3);
    if (what == 0) paint_peas(canvas, plate, light, draws);
    if (what == 1) paint_strands(canvas, plate, light, draws);
    if (what == 2) paint_leaf(canvas, plate, light, draws);
  }
  if (main_thing == 2 || draws.chance(0.6f)) paint_crumbs(canvas, plate, light, draws);
}

}  // namespace tandem
