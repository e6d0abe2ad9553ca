#include "tandem/data/synthetic/plates_dirt.h"

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

Rgb pick(std::span<const Rgb> colors, PlateRng& rng) {
  return colors[static_cast<std::size_t>(rng.below(static_cast<int>(colors.size())))];
}

// A uniformly distributed point of the disc of radius `reach` around the center of the plate.
Vec2 random_point(PlateRng& rng, float reach) {
  const float turns = rng.unit(), distance = reach * std::sqrt(rng.unit());
  return {distance * sine_of_turns(turns + 0.25f), distance * sine_of_turns(turns)};
}

// The look of what covers the plate.
struct Material {
  Rgb color;
  float share = 1;      // opacity
  float thickness = 0;  // in pixels
  float gloss = 0.3f;
  float edge = 0;      // darkening of the border, where it dried
  float rough = 0.1f;  // variation of its color
};

// A disc with an irregular border (a short Fourier series). distance() is in plate radii and negative inside.
class Blob {
 public:
  Blob(Vec2 at, float radius, float variation, PlateRng& rng)
      : at_(at), radius_(radius), reach_(radius * (1 + 2.2f * variation)) {
    const float turns = rng.unit(), longer = rng.between(1, 1.6f);
    along_ = {sine_of_turns(turns + 0.25f), sine_of_turns(turns)};
    stretch_ = longer;
    float amplitude = 0.7f * variation;  // decreases with the frequency
    for (Vec2& one : harmonics_) {
      one = {amplitude * rng.approx_normal(), amplitude * rng.approx_normal()};
      amplitude *= 0.62f;
    }
  }
  Vec2 at() const { return at_; }
  float reach() const { return reach_; }

  float distance(Vec2 point) const {
    const Vec2 off{point.x - at_.x, point.y - at_.y};
    const float u = off.x * along_.x + off.y * along_.y, v = (off.y * along_.x - off.x * along_.y) * stretch_;
    const float length = std::sqrt(u * u + v * v) + 1e-6f;
    // Cosines and sines of the angle's multiples, by the addition formulas.
    const float cosine = u / length, sine = v / length;
    float c = cosine, s = sine, border = 1;
    for (const Vec2& one : harmonics_) {
      const float next = c * cosine - s * sine;
      s = s * cosine + c * sine;
      c = next;
      border += one.x * c + one.y * s;
    }
    return length - radius_ * border;
  }

 private:
  Vec2 at_, along_;
  float radius_, reach_, stretch_ = 1;
  std::array<Vec2, 5> harmonics_;
};

// Covers one pixel with material; `distance` (in plate radii) is that to its border.
void blend_material(Canvas& canvas, const Plate& plate, int x, int y, float distance,
                    const Material& material, float share) {
  const float soft = 1.3f / plate.radius;
  const float cover = share * (1 - smooth_step(-soft, soft, distance));
  if (cover <= 0) return;
  const float pixels = -distance * plate.radius, unit = canvas.unit();
  const float near_border = 1 - smooth_step(0, 5 * unit, pixels);
  const float grain = canvas.grain.row(y)[x];
  const Rgb color = (1 - material.edge * near_border + material.rough * grain) * material.color;
  canvas.blend(x, y, color, cover * std::min(material.share + material.edge * near_border, 1.0f));
  const float dome = smooth_step(0, 6 * unit, pixels);
  canvas.height.row(y)[x] += cover * material.thickness * (dome + 0.15f * material.rough * grain);
  float& gloss = canvas.gloss.row(y)[x];
  gloss += (material.gloss - gloss) * cover;
}

void paint_blob(Canvas& canvas, const Plate& plate, const Blob& blob, const Material& material) {
  for_pixels(canvas, plate, blob.at(), blob.reach(), [&](int x, int y, Vec2 point) {
    blend_material(canvas, plate, x, y, blob.distance(point), material, 1);
  });
}

// The small shadow beside an object that lies on the plate.
void paint_contact_shadow(Canvas& canvas, const Plate& plate, const Light& light, Vec2 at, float radius) {
  const Vec2 under{at.x - 0.45f * radius * light.x, at.y - 0.45f * radius * light.y};
  for_pixels(canvas, plate, under, 1.5f * radius, [&](int x, int y, Vec2 point) {
    const float dx = point.x - under.x, dy = point.y - under.y;
    canvas.blend(x, y, {0.05f, 0.04f, 0.04f},
                 0.45f * (1 - smooth_step(0.7f * radius, 1.45f * radius, std::sqrt(dx * dx + dy * dy))));
  });
}

void paint_sauce(Canvas& canvas, const Plate& plate, Rgb color, PlateRng& rng) {
  const int count = 1 + rng.below(3);
  for (int i = 0; i < count; ++i) {
    const Material sauce{.color = rng.vary(color, 0.12f),
                         .share = rng.between(0.7f, 1),
                         .thickness = rng.between(0.5f, 2.5f) * canvas.unit(),
                         .gloss = rng.between(0.2f, 0.7f),
                         .edge = rng.between(0.05f, 0.3f),
                         .rough = rng.between(0.03f, 0.15f)};
    const float radius = rng.between(0.2f, 0.42f);
    const Blob blob{random_point(rng, 0.45f), radius, rng.between(0.06f, 0.2f), rng};
    paint_blob(canvas, plate, blob, sauce);
    const int drops = rng.below(8);
    for (int drop = 0; drop < drops; ++drop) {
      const Vec2 off = random_point(rng, 2.2f * radius);
      const Vec2 at{blob.at().x + off.x, blob.at().y + off.y};
      paint_blob(canvas, plate, Blob(at, rng.between(0.01f, 0.035f), 0.15f, rng), sauce);
    }
  }
}

// A curved stroke with streaks that fades along its length, as a knife, a finger or bread leaves it.
void paint_smear(Canvas& canvas, const Plate& plate, Rgb color, PlateRng& rng) {
  const Vec2 from = random_point(rng, 0.5f);
  const float turns = rng.unit(), length = rng.between(0.4f, 0.9f), bow_out = rng.between(-0.25f, 0.25f);
  const Vec2 aim{length * sine_of_turns(turns + 0.25f), length * sine_of_turns(turns)},
      to{from.x + aim.x, from.y + aim.y};
  const Vec2 bend{from.x + 0.5f * aim.x - bow_out * aim.y, from.y + 0.5f * aim.y + bow_out * aim.x};
  const float width = rng.between(0.07f, 0.18f), strength = rng.between(0.75f, 1.1f);
  const Material film{.color = color, .thickness = 0.6f * canvas.unit(), .gloss = 0.35f, .edge = 0.05f};
  constexpr int pieces = 20, streaks = 24;
  std::array<float, streaks + 1> streak{};
  for (float& one : streak) one = rng.between(0.15f, 1);
  const auto bow = [&](float t) {
    const float a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
    return Vec2{a * from.x + b * bend.x + c * to.x, a * from.y + b * bend.y + c * to.y};
  };
  for (int i = 0; i < pieces; ++i) {
    const Vec2 a = bow(static_cast<float>(i) / pieces), b = bow(static_cast<float>(i + 1) / pieces);
    const Vec2 step{b.x - a.x, b.y - a.y};
    const float stride = std::sqrt(step.x * step.x + step.y * step.y) + 1e-6f;
    const Vec2 along{step.x / stride, step.y / stride};
    for_pixels(canvas, plate, {0.5f * (a.x + b.x), 0.5f * (a.y + b.y)}, width + stride,
               [&](int x, int y, Vec2 point) {
                 const Vec2 off{point.x - a.x, point.y - a.y};
                 const float forward = (off.x * along.x + off.y * along.y) / stride;
                 if (forward < 0 || forward >= 1) return;  // belongs to another piece
                 const float side = (off.y * along.x - off.x * along.y) / width;
                 if (side <= -1 || side >= 1 || point.x * point.x + point.y * point.y > 0.92f) return;
                 const float t = (static_cast<float>(i) + forward) / pieces;
                 const float at = (side + 1) * 0.5f * streaks;
                 const auto lane = static_cast<std::size_t>(at);
                 const float part = at - static_cast<float>(lane);
                 const float amount = streak[lane] + (streak[lane + 1] - streak[lane]) * part;
                 const float fade = (1 - t * t) * (1 - smooth_step(0.7f, 1, std::fabs(side)));
                 blend_material(
                     canvas, plate, x, y, -1, film,
                     std::clamp(strength * fade * (amount + 0.25f * canvas.grain.row(y)[x]), 0.0f, 1.0f));
               });
  }
}

void paint_crumbs(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const Rgb crust = pick(crusts, rng);
  const Vec2 middle = random_point(rng, 0.4f);
  const float spread = rng.between(0.2f, 0.6f);
  const int count = 50 + rng.below(70);
  for (int i = 0; i < count; ++i) {
    const Vec2 off = random_point(rng, spread);
    const Vec2 at{middle.x + off.x, middle.y + off.y};
    if (at.x * at.x + at.y * at.y > 0.9f) continue;
    const float size = rng.unit(), radius = 0.013f + 0.04f * size * size * size;
    if (radius > 0.012f) paint_contact_shadow(canvas, plate, light, at, radius);
    const Blob crumb(at, radius, 0.35f, rng);
    paint_blob(canvas, plate, crumb,
               {.color = rng.vary(crust, 0.14f), .thickness = 3 * canvas.unit(), .gloss = 0, .rough = 0.3f});
  }
}

void paint_peas(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const Rgb green = pick(greens, rng);
  const int count = 6 + rng.below(14);
  for (int i = 0; i < count; ++i) {
    const Vec2 at = random_point(rng, 0.6f);
    const float radius = rng.between(0.03f, 0.042f);
    paint_contact_shadow(canvas, plate, light, at, radius);
    const Blob pea(at, radius, 0.04f, rng);
    paint_blob(canvas, plate, pea,
               {.color = rng.vary(green, 0.15f), .thickness = 5 * canvas.unit(), .gloss = 0.3f});
  }
}

// Noodles or grains of rice: round strokes of different length.
void paint_strands(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const bool rice = rng.chance(0.5f);
  const Rgb color = rng.vary({0.86f, 0.76f, 0.52f}, 0.12f);
  const int count = rice ? 15 + rng.below(40) : 2 + rng.below(5);
  const float width = rice ? 0.011f : 0.016f;
  const Vec2 middle = random_point(rng, 0.35f);
  for (int i = 0; i < count; ++i) {
    const Vec2 off = random_point(rng, rice ? 0.4f : 0.25f);
    Vec2 at{middle.x + off.x, middle.y + off.y};
    float turns = rng.unit();
    const float bend = rice ? 0 : rng.between(-0.03f, 0.03f);
    const int pieces = rice ? 3 : 18 + rng.below(20);
    for (int piece = 0; piece < pieces; ++piece) {
      paint_contact_shadow(canvas, plate, light, at, width);
      const float step = 1.1f * width;
      turns += bend + 0.01f * rng.approx_normal();
      at = {at.x + step * sine_of_turns(turns + 0.25f), at.y + step * sine_of_turns(turns)};
      if (at.x * at.x + at.y * at.y > 0.8f) break;
      paint_blob(canvas, plate, Blob(at, width, 0, rng),
                 {.color = color, .thickness = 2 * canvas.unit(), .gloss = 0.3f, .rough = 0.06f});
    }
  }
}

void paint_leaf(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const int count = 2 + rng.below(3);
  for (int i = 0; i < count; ++i) {
    const Vec2 at = random_point(rng, 0.6f);
    const float radius = rng.between(0.09f, 0.18f);
    paint_contact_shadow(canvas, plate, light, at, radius);
    const Blob leaf(at, radius, 0.4f, rng);
    paint_blob(canvas, plate, leaf,
               {.color = rng.vary(pick(greens, rng), 0.2f),
                .thickness = 4 * canvas.unit(),
                .gloss = 0.2f,
                .edge = 0.15f,
                .rough = 0.25f});
  }
}

// The border of something that dried, with a thin film inside.
void paint_dried(Canvas& canvas, const Plate& plate, Rgb color, PlateRng& rng) {
  const int count = 1 + rng.below(2);
  for (int i = 0; i < count; ++i) {
    const Blob blob{random_point(rng, 0.3f), rng.between(0.2f, 0.5f), rng.between(0.08f, 0.2f), rng};
    const float inside = rng.between(0.2f, 0.4f), border = rng.between(0.5f, 0.8f);
    const float width = rng.between(0.015f, 0.035f);
    const Material film{.color = color, .gloss = 0.1f, .rough = 0.12f};
    for_pixels(canvas, plate, blob.at(), blob.reach(), [&](int x, int y, Vec2 point) {
      const float distance = blob.distance(point);
      const float patchy = 0.7f + 0.4f * canvas.grain.row(y)[x];
      blend_material(canvas, plate, x, y, distance, film,
                     std::clamp(patchy * (inside + border * smooth_step(-2 * width, -0.5f * width, distance)),
                                0.0f, 1.0f));
    });
  }
}

void paint_grease(Canvas& canvas, const Plate& plate, PlateRng& rng) {
  const Blob blob{random_point(rng, 0.25f), rng.between(0.3f, 0.55f), 0.2f, rng};
  Plane film(canvas.size());
  film.add_noise(14 * canvas.unit(), 14 * canvas.unit(), 0.9f * canvas.unit(), rng);
  for_pixels(canvas, plate, blob.at(), blob.reach(), [&](int x, int y, Vec2 point) {
    const float cover = 1 - smooth_step(-0.04f, 0.02f, blob.distance(point));
    if (cover == 0) return;
    canvas.blend(x, y, {0.62f, 0.50f, 0.22f}, 0.2f * cover);
    canvas.height.row(y)[x] += cover * film.row(y)[x];
    canvas.gloss.row(y)[x] += 0.3f * cover;
  });
}

}  // namespace

void paint_dirt(Canvas& canvas, const Plate& plate, const Light& light, PlateRng& rng) {
  const Rgb sauce = rng.vary(pick(sauces, rng), 0.15f);
  if (rng.chance(0.35f)) paint_grease(canvas, plate, rng);
  if (rng.chance(0.5f)) paint_dried(canvas, plate, sauce, rng);
  const int main_thing = rng.below(4);  // always painted
  if (main_thing == 0 || rng.chance(0.6f)) paint_sauce(canvas, plate, sauce, rng);
  const int smears = main_thing == 1 ? 3 + rng.below(3) : 1 + rng.below(2);
  for (int i = 0; i < smears; ++i) paint_smear(canvas, plate, rng.vary(sauce, 0.15f), rng);
  if (main_thing == 3 || rng.chance(0.25f)) {
    const int what = rng.below(3);
    if (what == 0) paint_peas(canvas, plate, light, rng);
    if (what == 1) paint_strands(canvas, plate, light, rng);
    if (what == 2) paint_leaf(canvas, plate, light, rng);
  }
  if (main_thing == 2 || rng.chance(0.6f)) paint_crumbs(canvas, plate, light, rng);
}

}  // namespace tandem
