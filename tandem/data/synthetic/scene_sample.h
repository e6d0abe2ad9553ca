// Samples scenes and views: functions of a seed and an index. An expression asks for one random number at
// most, because compilers evaluate operands and arguments in different orders.
#pragma once

#include "tandem/data/synthetic/scene_kind_sample.h"
#include "tandem/data/synthetic/scene_pattern_sample.h"

namespace tandem::scenes {

constexpr void sample_base(Scene& scene, Random& r) {
  float* const p = scene.p;
  switch (scene.base) {
    case Base::landscape:
      p[0] = r.uniform(-0.4f, 0.6f);
      p[1] = r.chance(0.3f) ? 1.0f : 0.0f;
      p[2] = static_cast<float>(1 + r.below(6));
      p[3] = r.uniform(0, 0.5f);
      p[4] = r.uniform(0.05f, 0.5f);
      p[5] = r.scale(0.5f, 3);
      p[6] = r.uniform(0.35f, 0.65f);
      p[7] = r.chance(0.4f) ? 1.0f : 0.0f;
      p[8] = r.uniform(0, 1);
      p[9] = r.chance(0.5f) ? 0.0f : r.uniform(0.3f, 1.5f);
      p[10] = r.uniform(-1.5f, 1.5f);
      p[11] = r.uniform(-0.1f, 1.2f);
      break;
    case Base::tiles: {
      const float angle = r.chance(0.6f) ? 0.0f : r.uniform(0, tau);
      p[0] = static_cast<float>(r.below(5));
      p[1] = r.scale(1.2f, 8);
      p[2] = cosine(angle);
      p[3] = sine(angle);
      p[4] = static_cast<float>(1 + r.below(4));
      p[5] = r.chance(0.5f) ? 0.0f : r.uniform(0.2f, 0.9f);
      p[6] = r.uniform(0, 0.15f);
      p[7] = r.chance(0.3f) ? 0.0f : r.uniform(0.2f, 0.8f);
      p[8] = r.chance(0.7f) ? 0.0f : r.uniform(0.1f, 0.6f);
      break;
    }
    case Base::room: {
      const float yaw = 0.35f * r.normal(), pitch = 0.2f * r.normal() + 0.1f;
      p[0] = r.uniform(0.5f, 1.2f);
      p[2] = cosine(pitch);
      p[3] = sine(pitch);
      p[4] = cosine(yaw);
      p[5] = sine(yaw);
      p[6] = r.uniform(0.7f, 2.5f);
      p[7] = r.uniform(0.6f, 1.5f);
      p[8] = r.uniform(1.5f, 5);
      p[9] = r.uniform(0, 1);
      break;
    }
    case Base::solids:
      p[0] = r.uniform(0.8f, 3);
      p[1] = r.uniform(2.5f, 5);
      p[2] = r.uniform(0.5f, 0.9f);
      p[3] = p[0] / p[1] * r.uniform(0.7f, 1);
      p[4] = r.chance(0.5f) ? 0.0f : r.uniform(0.2f, 0.9f);
      p[5] = r.uniform(0.2f, 0.6f);
      scene.solids = 1 + r.below(Scene::max_solids);
      for (int i = 0; i < scene.solids; ++i) {
        const float angle = r.uniform(0, tau);
        scene.solid[i] = {.shape = r.below(3),
                          .x = r.uniform(-1.6f, 1.6f),
                          .z = r.uniform(-1.2f, 2),
                          .size = r.uniform(0.25f, 0.8f),
                          .height = r.uniform(0.2f, 0.9f),
                          .cosine = cosine(angle),
                          .sine = sine(angle),
                          .color = scene.palette[r.below(8)],
                          .pattern = r.chance(0.5f) ? 0 : 1 + r.below(2)};
      }
      break;
    default:
      break;
  }
}

// Scenes whose parts stand before something.
constexpr Base sample_background(Kind kind, Random& r) {
  switch (kind) {
    case Kind::landscape:
      return Base::landscape;
    case Kind::tiles:
      return Base::tiles;
    case Kind::room:
      return Base::room;
    case Kind::solids:
      return Base::solids;
    case Kind::pattern:
      return Base::pattern;
    default:
      break;
  }
  const float q = r.uniform();
  return q < 0.7f ? Base::pattern : q < 0.82f ? Base::landscape : q < 0.92f ? Base::tiles : Base::room;
}

// Seeds of a scene. Four scenes in a row sometimes share their colors, or colors and patterns, so that
// neither is enough to tell them apart.
struct SceneKey {
  std::uint64_t seed = 0, index = 0;

  constexpr Random layout() const { return {seed, 4 * index}; }
  constexpr Random patterns(int i) const {
    return {seed, 4 * (share() < 0.15f ? index / 4 * 4 : index) + 1 + (static_cast<std::uint64_t>(i) << 62)};
  }
  constexpr Random colors() const { return {seed, 4 * (share() < 0.4f ? index / 4 * 4 : index) + 2}; }

 private:
  constexpr float share() const { return Random(seed, 4 * (index / 4 * 4) + 3).uniform(); }
};

// Shares of the kinds, in their order; any sum.
struct KindShares {
  float share[kind_count] = {10, 14, 18, 5, 5, 7, 5, 7, 5, 4, 5, 5, 5, 4, 7};
};

constexpr Kind sample_kind(const KindShares& shares, Random& random) {
  float total = 0;
  for (const float share : shares.share) total += share;
  float q = random.uniform() * total;
  for (int i = 0; i < kind_count - 1; ++i)
    if ((q -= shares.share[i]) < 0) return static_cast<Kind>(i);
  return static_cast<Kind>(kind_count - 1);
}

constexpr void sample_scene(Scene& scene, const SceneKey& key, const KindShares& shares) {
  scene.parts = scene.members = scene.solids = 0;
  Random colors = key.colors(), r = key.layout();
  sample_palette(scene.palette, colors);
  for (int i = 0; i < 3; ++i) sample_pattern(scene.pattern[i], scene.palette, key.patterns(i));
  scene.seed = r.word();
  scene.kind = sample_kind(shares, r);
  scene.base = sample_background(scene.kind, r);
  const float angle = r.uniform(0, tau), tilt = r.uniform(0.3f, 0.9f);
  scene.light_x = cosine(angle) * tilt;
  scene.light_y = sine(angle) * tilt;
  scene.light_z = square_root(1 - tilt * tilt);
  scene.vignette = r.chance(0.5f) ? 0.0f : r.uniform(0, 0.3f);
  scene.slope_x = 0.2f * r.normal();
  scene.slope_y = 0.2f * r.normal();
  sample_base(scene, r);
  KindSampler sampler(scene, r);
  sampler.sample_style();
  sampler.sample_parts();
  const Style& style = sampler.style();
  const int count = scene.parts;
  scene.attribute[0] = static_cast<int>(scene.kind);
  scene.attribute[1] = static_cast<int>(scene.base);
  scene.attribute[2] = count < 1 ? 0 : count < 5 ? 1 : count < 15 ? 2 : count < 40 ? 3 : count < 80 ? 4 : 5;
  scene.attribute[3] = style.shape + 1;
  scene.attribute[4] = style.lit;
  scene.attribute[5] = static_cast<int>(style.textured * 4);
  scene.attribute[6] = scene.pattern[0].post;
  scene.attribute[7] = scene.pattern[0].steps;
}

struct ViewOptions {
  float min_area = 0.2f;  // of the scene that a view shows
  float jitter = 1;       // of colors
};

constexpr void sample_view(View& view, const SceneKey& key, int number, const ViewOptions& options) {
  Random r(key.seed ^ 0x7669657773ull, key.index * 16 + static_cast<std::uint64_t>(number));
  const float side = square_root(options.min_area * power(1 / options.min_area, r.uniform())),
              aspect = square_root(r.scale(0.75f, 1.3333f)), jitter = options.jitter;
  view.width = smaller(side * aspect, 1);
  view.height = smaller(side / aspect, 1);
  view.x = r.uniform(-1, 1) * (1 - view.width);
  view.y = r.uniform(-1, 1) * (1 - view.height);
  if (r.chance(0.5f)) view.width = -view.width;
  const float angle = r.chance(0.5f) ? 0.0f : 0.3f * r.normal();
  view.cosine = cosine(angle);
  view.sine = sine(angle);
  view.lens = r.chance(0.7f) ? 0.0f : 0.1f * r.normal();
  view.blur = r.chance(0.5f) ? 1.0f : r.uniform(1, 3);
  const float strength = r.chance(0.8f) ? jitter : 0.0f;
  view.gain = exponential(0.35f * strength * r.normal());
  view.contrast = exponential(0.3f * strength * r.normal());
  view.saturation = r.uniform(1 - 0.8f * strength, 1 + 0.8f * strength);
  const float hue = 0.35f * strength * r.normal();
  view.hue_cosine = cosine(hue);
  view.hue_sine = sine(hue);
  view.gamma = exponential(0.2f * strength * r.normal());
  view.tint = {exponential(0.1f * strength * r.normal()), exponential(0.1f * strength * r.normal()),
               exponential(0.1f * strength * r.normal())};
  if (jitter > 0 && r.chance(0.15f)) view.saturation = 0;
  view.noise = r.chance(0.5f) ? 0.0f : r.uniform(0, 0.045f) * larger(jitter, 0.2f);
  view.pivot = r.uniform(0.35f, 0.6f);
  view.seed = r.word();
}

}  // namespace tandem::scenes
