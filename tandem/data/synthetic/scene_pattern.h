// The color of a pattern at a point.
#pragma once

#include "tandem/data/synthetic/scene.h"

namespace tandem::scenes {

struct PatternState {
  float x, y;
  float value = 0, light = 0, trap = 1000;
};

constexpr void move_point(const PatternStep& s, std::uint32_t seed, PatternState& at) {
  const float x = at.x, y = at.y;
  switch (s.step) {
    case Step::rotate:
      at.x = s.a * x - s.b * y + s.c;
      at.y = s.b * x + s.a * y + s.d;
      break;
    case Step::bend:
      at.x = x + s.a * sine(s.b * y + s.c);
      at.y = y + s.a * sine(s.b * x + s.d);
      break;
    case Step::warp:
      at.x = x + s.a * value_noise(x * s.b, y * s.b, seed);
      at.y = y + s.a * value_noise(x * s.b + 31.7f, y * s.b + 11.3f, seed + 3);
      break;
    case Step::polar: {
      const float r = length(x, y) + 1e-4f;
      at.x = s.mode & 1 ? logarithm(r) * s.a : r * s.a;
      at.y = angle_of(y, x) * static_cast<float>(1 + (s.mode >> 1)) * 0.5f;
      break;
    }
    case Step::fold:
      at.x = magnitude(x) - s.a;
      at.y = magnitude(y) - s.b;
      break;
    case Step::repeat: {
      const float u = x / s.a, v = y / s.a;
      const auto i = static_cast<float>(round_of(u)), j = static_cast<float>(round_of(v));
      at.light += 0.2f * sine(i * 1.7f + j * 2.9f);
      at.x = (u - i) * s.a * 2;
      at.y = (v - j) * s.a * 2;
      break;
    }
    case Step::square:
      at.x = clamp(x * x - y * y + s.a, -6, 6);
      at.y = clamp(2 * x * y + s.b, -6, 6);
      break;
    case Step::invert: {
      const float r = s.a / (x * x + y * y + 0.05f);
      at.x = x * r;
      at.y = y * r;
      break;
    }
    case Step::twist: {
      const float r = length(x, y), a = s.a * (s.mode & 1 ? r : exponential(-r));
      const float c = cosine(a), k = sine(a);
      at.x = c * x - k * y;
      at.y = k * x + c * y;
      break;
    }
    default: {  // mirror
      const float r = length(x, y), sector = tau / static_cast<float>(3 + s.mode);
      float a = angle_of(y, x);
      a = magnitude(a - sector * static_cast<float>(round_of(a / sector)));
      at.x = r * cosine(a);
      at.y = r * sine(a);
      break;
    }
  }
}

constexpr float value_of(const PatternStep& s, std::uint32_t seed, PatternState& at) {
  const float x = at.x, y = at.y;
  switch (s.step) {
    case Step::waves:
      return sine(x * s.a + s.b);
    case Step::rings:
      return sine(length(x, y) * s.a + s.b);
    case Step::eggs:
      return sine(x * s.a) * sine(y * s.a + s.b) * 1.5f;
    case Step::noise:
      return fractal_noise(x * s.a, y * s.a, seed, s.b, false);
    case Step::ridges:
      return fractal_noise(x * s.a, y * s.a, seed, s.b, true);
    case Step::cells: {
      const Cell cell = cell_at(x * s.a, y * s.a, seed);
      return s.mode & 8 ? 1 - 2 * cell.nearest : static_cast<float>(cell.id & 255) / 127.5f - 1;
    }
    case Step::edges: {
      const Cell cell = cell_at(x * s.a, y * s.a, seed);
      const float gap = cell.second - cell.nearest;
      if (s.mode & 8) return 2 * gap - 0.5f;
      return gap < 0.12f ? -1.0f : static_cast<float>(cell.id & 255) / 255;
    }
    case Step::trap:
      at.trap = smaller(at.trap, magnitude(x * s.a + y * s.b));
      return 1 - 2 * at.trap;
    case Step::slope:
      return x * s.a;
    case Step::blocks:
      return static_cast<float>(hash(floor_of(x * s.a), floor_of(y * s.a), seed) & 1023) / 511.5f - 1;
    default:
      return length(x, y) < s.a ? 1.0f : -1.0f;  // disk
  }
}

constexpr void add_value(const PatternStep& s, float f, PatternState& at) {
  switch (s.mode & 7) {
    case 0:
    case 1:
      at.value += f * s.c;
      break;
    case 2:
      at.value *= f;
      break;
    case 3:
      at.value = larger(at.value, f);
      break;
    case 4:
      at.value = smaller(at.value, f);
      break;
    case 5:
      at.light += f * s.c;
      break;
    case 6:
      at.value = magnitude(at.value - f);
      break;
    default:
      at.x += f * 0.3f * s.c;
      at.value += 0.5f * f;
      break;
  }
}

constexpr float ramp_place(int post, float v) {
  switch (post) {
    case 0:
      return 0.5f + 0.5f * sine(v * 1.5f);
    case 1:
      return fraction(v * 0.7f);
    case 2:
      return static_cast<float>(floor_of(fraction(v * 0.3f) * 5)) * 0.2499f;
    case 3:
      return smooth_step(-0.15f, 0.15f, v);
    case 4:
      return 1 / (1 + exponential(-2 * v));
    default:
      return unit(0.5f + 0.4f * v);
  }
}

[[gnu::noinline]] constexpr Color color_at(const Pattern& pattern, float x, float y) {
  PatternState at{pattern.cosine * x - pattern.sine * y + pattern.offset_x,
                  pattern.sine * x + pattern.cosine * y + pattern.offset_y};
  for (int i = 0; i < pattern.steps; ++i) {
    const PatternStep& step = pattern.step[i];
    const std::uint32_t seed = pattern.seed + static_cast<std::uint32_t>(13 * i);
    if (static_cast<int>(step.step) < first_value_step)
      move_point(step, seed, at);
    else
      add_value(step, value_of(step, seed, at), at);
  }
  const float v = unit(ramp_place(pattern.post, at.value * pattern.gain + pattern.bias));
  const float light = 1 + 0.25f * clamp(at.light, -2, 2);
  if (pattern.cosine_colors) {
    const auto channel = [&](float base, float swing, float phase) {
      return unit(unit(base + swing * cosine(tau * (v * phase * 2 + phase))) * light);
    };
    return {channel(pattern.base.r, pattern.swing.r, pattern.phase.r),
            channel(pattern.base.g, pattern.swing.g, pattern.phase.g),
            channel(pattern.base.b, pattern.swing.b, pattern.phase.b)};
  }
  const float place = v * 3.999f;
  const int stop = static_cast<int>(place);
  return unit(
      scaled(mix(pattern.stops[stop], pattern.stops[stop + 1], place - static_cast<float>(stop)), light));
}

}  // namespace tandem::scenes
