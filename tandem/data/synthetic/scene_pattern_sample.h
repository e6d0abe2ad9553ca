// Samples the colors and the patterns of scenes.
#pragma once

#include "tandem/data/synthetic/scene.h"

namespace tandem::scenes {

// One to three hues with their shades, mostly of one saturation.
constexpr void sample_palette(Color* colors, Random& random) {
  const int hues = 1 + random.below(3);
  const float hue[3] = {random.uniform(), random.uniform(), random.uniform()};
  float saturation = random.uniform();
  saturation *= saturation;
  const float a = random.uniform(0.05f, 0.6f), b = random.uniform(0.5f, 1);
  for (int i = 0; i < 8; ++i) {
    float s = unit(saturation + 0.25f * random.normal() * (0.3f + saturation));
    if (random.chance(0.15f)) s = random.uniform();
    const float v = random.chance(0.7f) ? random.uniform(smaller(a, b), larger(a, b)) : random.uniform();
    const float center = hue[random.below(hues)];
    colors[i] = from_hsv(center + 0.06f * random.normal() + 2, s, v);
  }
}

constexpr Step sample_step(Random& random, bool smooth, bool moves) {
  if (moves) {
    constexpr float shares[] = {0.2f, 0.18f, 0.2f, 0.07f, 0.08f, 0.06f, 0.07f, 0.04f, 0.05f};
    float q = random.uniform();
    for (int i = 0; i < 9; ++i)
      if ((q -= shares[i]) < 0) return static_cast<Step>(i);
    return Step::mirror;
  }
  if (smooth) {
    constexpr Step steps[] = {Step::noise, Step::ridges, Step::noise, Step::slope, Step::waves, Step::cells};
    return steps[random.below(6)];
  }
  return static_cast<Step>(first_value_step + random.below(step_count - first_value_step));
}

constexpr void sample_step_arguments(PatternStep& s, Random& random) {
  switch (s.step) {
    case Step::rotate: {
      const float angle = random.uniform(-pi, pi), size = random.scale(0.5f, 2);
      s.a = size * cosine(angle);
      s.b = size * sine(angle);
      s.c = random.normal();
      s.d = random.normal();
      break;
    }
    case Step::bend:
      s.a = random.uniform(0.05f, 0.8f);
      s.b = random.scale(0.7f, 6);
      s.c = random.uniform(0, tau);
      s.d = random.uniform(0, tau);
      break;
    case Step::warp:
      s.a = random.uniform(0.1f, 1);
      s.b = random.scale(0.5f, 5);
      break;
    case Step::polar:
      s.a = random.scale(0.5f, 3);
      break;
    case Step::fold:
      s.a = random.uniform(0, 1.2f);
      s.b = random.uniform(0, 1.2f);
      break;
    case Step::repeat:
      s.a = random.scale(0.25f, 1.5f);
      break;
    case Step::square:
      s.a = random.uniform(-1.2f, 0.4f);
      s.b = random.uniform(-0.8f, 0.8f);
      break;
    case Step::invert:
      s.a = random.scale(0.4f, 2);
      break;
    case Step::twist:
      s.a = random.uniform(-4, 4);
      break;
    case Step::mirror:
      break;
    case Step::waves:
    case Step::rings:
    case Step::eggs:
      s.a = random.scale(1.5f, 20);
      s.b = random.uniform(0, tau);
      break;
    case Step::noise:
    case Step::ridges:
      s.a = random.scale(0.6f, 10);
      s.b = random.uniform(0.35f, 0.8f);
      break;
    case Step::cells:
    case Step::edges:
    case Step::blocks:
      s.a = random.scale(0.8f, 8);
      break;
    case Step::trap: {
      const float angle = random.uniform(0, tau);
      s.a = cosine(angle);
      s.b = sine(angle);
      break;
    }
    case Step::slope:
      s.a = random.scale(0.3f, 2);
      break;
    case Step::disk:
      s.a = random.scale(0.2f, 1.5f);
      break;
  }
}

constexpr void sample_pattern(Pattern& pattern, const Color* palette, Random random) {
  pattern.seed = random.word();
  const bool smooth = random.chance(0.4f);
  pattern.steps = 1 + random.below(smooth ? 5 : Pattern::max_steps - 1);
  bool has_value = false;
  for (int i = 0; i < pattern.steps; ++i) {
    PatternStep& s = pattern.step[i];
    const bool must_give_value = i == pattern.steps - 1 && !has_value;
    const bool moves = !must_give_value && random.chance(0.5f);
    s = {.step = sample_step(random, smooth, moves), .mode = random.below(16)};
    sample_step_arguments(s, random);
    if (moves) continue;
    s.c = random.uniform(0.3f, 1.3f);
    if (random.chance(0.5f)) s.c = -s.c;
    if (!has_value) s.mode &= 8;  // the first one is added
    has_value = true;
  }
  pattern.post = smooth ? (random.chance(0.6f) ? 5 : 4) : random.below(6);
  pattern.gain = random.scale(0.5f, 2.5f) * (smooth ? 0.7f : 1.0f);
  pattern.bias = random.normal();
  pattern.cosine_colors = random.chance(0.2f);
  const bool narrow = random.chance(0.35f);
  const Color base = palette[random.below(8)];
  for (Color& stop : pattern.stops) {
    const Color other = palette[random.below(8)];
    const float shade = random.uniform(0.8f, 1.2f), shift = 0.04f * random.normal();
    stop =
        narrow ? unit(Color{base.r * shade + shift, base.g * shade + shift, base.b * shade + shift}) : other;
  }
  const auto three = [&](float low, float high) {
    return Color{random.uniform(low, high), random.uniform(low, high), random.uniform(low, high)};
  };
  pattern.base = three(0.35f, 0.65f);
  pattern.swing = three(0.15f, 0.5f);
  pattern.phase = three(0, 1);
  const float size = random.scale(0.5f, 3), angle = random.uniform(0, tau);
  pattern.cosine = size * cosine(angle);
  pattern.sine = size * sine(angle);
  pattern.offset_x = 2 * random.normal();
  pattern.offset_y = 2 * random.normal();
}

}  // namespace tandem::scenes
