// The canvas of plates: color, height and gloss per pixel, so that one light shades everything consistently.
// Only operations with exactly defined IEEE 754 results are used (no library sine, and the build disables
// fused multiply-adds), so an image has the same bits on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/core/philox.h"
#include "tandem/image/image.h"

namespace tandem {

struct Rgb {
  float red = 0, green = 0, blue = 0;
};
inline Rgb mix(Rgb a, Rgb b, float share_of_b) {
  return {a.red + (b.red - a.red) * share_of_b, a.green + (b.green - a.green) * share_of_b,
          a.blue + (b.blue - a.blue) * share_of_b};
}
inline Rgb operator*(float factor, Rgb color) {
  return {factor * color.red, factor * color.green, factor * color.blue};
}

struct Vec2 {
  float x = 0, y = 0;
};

// 0 below `low`, 1 above `high`, smooth in between.
inline float smooth_step(float low, float high, float value) {
  const float t = std::clamp((value - low) / (high - low), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// sin(2π · turns), accurate to three digits.
inline float sine_of_turns(float turns) {
  const float t = turns - std::floor(turns) - 0.5f;  // in [−½, ½), shifted by half a turn
  const float rough = -8 * t + 16 * t * std::fabs(t);
  return rough * (0.775f + 0.225f * std::fabs(rough));
}

// The random numbers of one image, in the order of the calls. Never call it twice in the arguments of one
// function call, whose evaluation order is unspecified; braced initializers and separate statements are
// ordered.
class PlateRng {
 public:
  PlateRng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  float unit();  // in [0, 1)
  float between(float low, float high) { return low + (high - low) * unit(); }
  int below(int bound) { return static_cast<int>(unit() * static_cast<float>(bound)); }
  bool chance(float probability) { return unit() < probability; }
  float approx_normal() {  // approximately standard normal, within ±3
    const float first = unit(), second = unit(), third = unit();
    return 2 * (first + second + third - 1.5f);
  }
  Rgb vary(Rgb color, float spread);        // changes brightness, and hue a little
  Words4 words(std::uint64_t block) const;  // a separate stream

 private:
  std::uint64_t seed_, stream_, next_ = 0;
  int used_ = 4;
  Words4 words_{};
};

// One value per pixel.
class Plane {
 public:
  explicit Plane(int size, float value = 0)
      : size_(size), values_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), value) {}

  int size() const { return size_; }
  float* row(int y) { return values_.data() + static_cast<std::ptrdiff_t>(y) * size_; }
  const float* row(int y) const { return values_.data() + static_cast<std::ptrdiff_t>(y) * size_; }

  // Adds smooth noise of ±amplitude with features of about cell_x × cell_y pixels.
  void add_noise(float cell_x, float cell_y, float amplitude, PlateRng& rng);

 private:
  int size_;
  std::vector<float> values_;
};

struct Light {
  float x = 0, y = 0, z = 1;  // unit vector towards the light; z points to the camera
  Rgb color{1, 1, 1};
  float ambient = 0.5f, vignette = 0, blur = 0, noise = 0;
};

struct Canvas {
  explicit Canvas(int size) : red(size), green(size), blue(size), height(size), gloss(size), grain(size) {}

  int size() const { return red.size(); }
  float unit() const {
    return static_cast<float>(size()) / 480;
  }  // lengths are given for a side of 480 pixels
  void blend(int x, int y, Rgb color, float share) {
    float& r = red.row(y)[x];
    float& g = green.row(y)[x];
    float& b = blue.row(y)[x];
    r += (color.red - r) * share;
    g += (color.green - g) * share;
    b += (color.blue - b) * share;
  }

  Plane red, green, blue;  // 0 … 1
  Plane height;            // in pixels
  Plane gloss;
  Plane grain;  // fine noise of ±1 that textures share
};

// Applies lighting, blur and sensor noise, and rounds to bytes. Consumes the canvas.
Image shade(Canvas&& canvas, const Light& light, const PlateRng& rng);

}  // namespace tandem
