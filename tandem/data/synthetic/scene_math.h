// The arithmetic of rendered scenes: plain additions and multiplications of f32, compiled without
// contraction, so that a pixel has the same bits on the CPU and on a GPU. The errors of these functions are a
// few 1e-6, which no pixel shows. Most functions are not inlined: with all of it in one place, the
// instructions of a kernel would not fit the instruction caches.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tandem/core/philox.h"

namespace tandem::scenes {

inline constexpr float pi = 3.14159265358979f, tau = 2 * pi;

struct Point {
  float x = 0, y = 0;
};

struct Color {
  float r = 0, g = 0, b = 0;
};

constexpr float clamp(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}
constexpr float unit(float x) {
  return clamp(x, 0, 1);
}
constexpr float mix(float a, float b, float t) {
  return a + (b - a) * t;
}
constexpr float magnitude(float x) {
  return x < 0 ? -x : x;
}
constexpr float smaller(float a, float b) {
  return a < b ? a : b;
}
constexpr float larger(float a, float b) {
  return a > b ? a : b;
}

// Arguments far outside the range of int become its ends.
constexpr int floor_of(float x) {
  const float limited = clamp(x, -1e9f, 1e9f);
  const int truncated = static_cast<int>(limited);
  return truncated - (limited < static_cast<float>(truncated));
}
constexpr int round_of(float x) {
  return floor_of(x + 0.5f);
}
constexpr float fraction(float x) {
  return x - static_cast<float>(floor_of(x));
}
// Rises from 0 at `low` to 1 at `high`.
constexpr float smooth_step(float low, float high, float x) {
  const float t = unit((x - low) / (high - low));
  return t * t * (3 - 2 * t);
}

constexpr float square_root(float x) {
  return std::sqrt(x);
}
constexpr float length(float x, float y) {
  return square_root(x * x + y * y);
}

[[gnu::noinline]] constexpr float sine(float x) {
  const int half_turns = round_of(x * (1 / pi));
  const auto n = static_cast<float>(half_turns);
  const float r = (x - n * 3.140625f) - n * 9.67653589793e-4f;
  const float s = r * r;
  const float value =
      r * (1 + s * (-1.66666667e-1f + s * (8.33333333e-3f + s * (-1.98409000e-4f + s * 2.7525562e-6f))));
  return half_turns & 1 ? -value : value;
}
constexpr float cosine(float x) {
  return sine(x + pi / 2);
}

[[gnu::noinline]] constexpr float exponential(float x) {
  const float limited = clamp(x, -80, 80);
  const int n = round_of(limited * 1.44269504f);
  const float r = (limited - static_cast<float>(n) * 0.693359375f) + static_cast<float>(n) * 2.12194440e-4f;
  const float value =
      1 +
      r * (1 + r * (0.5f + r * (0.166666672f + r * (0.0416664853f + r * (0.00836333774f + r * 0.00139f)))));
  return value * std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

// Of values above 0; −87 for others.
[[gnu::noinline]] constexpr float logarithm(float x) {
  if (!(x > 1e-38f)) return -87;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  int exponent = static_cast<int>(bits >> 23) - 127;
  float m = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f800000u);
  if (m > 1.41421356f) {
    m *= 0.5f;
    ++exponent;
  }
  const float t = (m - 1) / (m + 1), s = t * t;
  return 2 * t * (1 + s * (0.333333333f + s * (0.2f + s * (0.142857143f + s * 0.111111111f)))) +
         static_cast<float>(exponent) * 0.693147181f;
}

[[gnu::noinline]] constexpr float power(float base, float exponent) {
  return exponential(exponent * logarithm(base));
}

[[gnu::noinline]] constexpr float angle_of(float y, float x) {
  const float ax = magnitude(x), ay = magnitude(y);
  const float high = larger(ax, ay) + 1e-20f, low = smaller(ax, ay);
  const float t = low / high, s = t * t;
  float a =
      t * (0.99997726f +
           s * (-0.33262347f + s * (0.19354346f + s * (-0.11643287f + s * (0.05265332f - s * 0.01172120f)))));
  if (ay > ax) a = pi / 2 - a;
  if (x < 0) a = pi - a;
  return y < 0 ? -a : a;
}

constexpr std::uint32_t hash(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t h = a * 0x8da6b343u ^ b * 0xd8163841u ^ c * 0xcb1ab31fu;
  h = (h ^ (h >> 15)) * 0x2c1b3c6du;
  h = (h ^ (h >> 12)) * 0x297a2d39u;
  return h ^ (h >> 15);
}
constexpr std::uint32_t hash(int a, int b, std::uint32_t c) {
  return hash(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), c);
}

// Random numbers in the order in which they are asked for, from one stream of Philox.
class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  [[gnu::noinline]] constexpr std::uint32_t word() {
    if (used_ == 4) {
      words_ = random_block(seed_, stream_, block_++);
      used_ = 0;
    }
    return words_.word[used_++];
  }
  constexpr float uniform() { return to_unit_float(word()); }
  constexpr float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // Uniform in the logarithm.
  [[gnu::noinline]] constexpr float scale(float low, float high) {
    return low * power(high / low, uniform());
  }
  constexpr int below(int count) {
    return static_cast<int>(to_below(word(), static_cast<std::uint32_t>(count)));
  }
  constexpr bool chance(float probability) { return uniform() < probability; }
  // About normal: deviation 1, within ±3.5.
  [[gnu::noinline]] constexpr float normal() {
    float sum = uniform();
    for (int i = 0; i < 3; ++i) sum += uniform();
    return (sum - 2) * 1.7320508f;
  }

 private:
  std::uint64_t seed_, stream_, block_ = 0;
  Words4 words_ = {};
  int used_ = 4;
};

// Smooth noise in [−1, 1], with cells of side 1.
[[gnu::noinline]] constexpr float value_noise(float x, float y, std::uint32_t seed) {
  const int ix = floor_of(x), iy = floor_of(y);
  float tx = x - static_cast<float>(ix), ty = y - static_cast<float>(iy);
  tx = tx * tx * tx * (tx * (tx * 6 - 15) + 10);
  ty = ty * ty * ty * (ty * (ty * 6 - 15) + 10);
  const auto at = [&](int i, int j) {
    return static_cast<float>(hash(ix + i, iy + j, seed) >> 8) * 0x1p-23f - 1;
  };
  return mix(mix(at(0, 0), at(1, 0), tx), mix(at(0, 1), at(1, 1), tx), ty);
}

// Octaves of noise, each rotated and of about twice the frequency. `gain`: the amplitude of the next octave.
[[gnu::noinline]] constexpr float fractal_noise(float x, float y, std::uint32_t seed, float gain, bool ridged,
                                                int octaves = 5) {
  float sum = 0, weight = 1, total = 0;
  for (int i = 0; i < octaves; ++i) {
    float noise = value_noise(x, y, seed + static_cast<std::uint32_t>(i));
    if (ridged) noise = 1 - 2 * magnitude(noise);
    sum += weight * noise;
    total += weight;
    weight *= gain;
    const float next = 1.6f * x - 1.2f * y + 3.1f;
    y = 1.2f * x + 1.6f * y - 7.7f;
    x = next;
  }
  return 1.4f * sum / total;
}

// The nearest of points, one per cell of side 1, and the second nearest.
struct Cell {
  float nearest, second;
  std::uint32_t id;
};
[[gnu::noinline]] constexpr Cell cell_at(float x, float y, std::uint32_t seed) {
  const int ix = floor_of(x), iy = floor_of(y);
  float first = 8, second = 8;
  std::uint32_t id = 0;
  for (int j = -1; j <= 1; ++j)
    for (int i = -1; i <= 1; ++i) {
      const std::uint32_t h = hash(ix + i, iy + j, seed);
      const float px = static_cast<float>(ix + i) + static_cast<float>(h & 0xffff) * 0x1p-16f - x,
                  py = static_cast<float>(iy + j) + static_cast<float>(h >> 16) * 0x1p-16f - y;
      const float d = px * px + py * py;
      if (d < first) {
        second = first;
        first = d;
        id = h;
      } else if (d < second) {
        second = d;
      }
    }
  return {square_root(first), square_root(second), id};
}

constexpr Color mix(const Color& a, const Color& b, float t) {
  return {mix(a.r, b.r, t), mix(a.g, b.g, t), mix(a.b, b.b, t)};
}
constexpr Color scaled(const Color& c, float s) {
  return {c.r * s, c.g * s, c.b * s};
}
constexpr Color unit(const Color& c) {
  return {unit(c.r), unit(c.g), unit(c.b)};
}
constexpr Color from_hsv(float hue, float saturation, float value) {
  const auto channel = [&](float offset) {
    const float t = unit(magnitude(fraction(hue + offset) * 6 - 3) - 1);
    return value * (1 - saturation + saturation * t);
  };
  return {channel(0), channel(2.0f / 3), channel(1.0f / 3)};
}

}  // namespace tandem::scenes
