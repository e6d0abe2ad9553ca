// What plates are painted on: a picture that knows, beside the colour of each pixel, how high it stands and
// how much it shines, so that one light falls on everything alike. Only operations that IEEE 754 defines to
// the bit are used (no library sine, and the build keeps the compiler from fusing products and sums), so a
// picture has the same bits on every machine.
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
inline Rgb operator*(float factor, Rgb colour) {
  return {factor * colour.red, factor * colour.green, factor * colour.blue};
}

struct Spot {
  float x = 0, y = 0;
};

// 0 below `low`, 1 above `high`, smooth between.
inline float smooth_step(float low, float high, float value) {
  const float t = std::clamp((value - low) / (high - low), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// A sine of period 1, to three digits.
inline float wave(float turns) {
  const float t = turns - std::floor(turns) - 0.5f;  // −½ … ½, half a turn on
  const float rough = -8 * t + 16 * t * std::fabs(t);
  return rough * (0.775f + 0.225f * std::fabs(rough));
}

// The draws of one picture, in the order they are asked for: ask for two in braces or in two statements,
// never as arguments of one call, whose order is the compiler's.
class PlateDraws {
 public:
  PlateDraws(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  float unit();  // in [0, 1)
  float between(float low, float high) { return low + (high - low) * unit(); }
  int below(int bound) { return static_cast<int>(unit() * static_cast<float>(bound)); }
  bool chance(float probability) { return unit() < probability; }
  float bell() {  // close to normal, never beyond 3
    const float first = unit(), second = unit(), third = unit();
    return 2 * (first + second + third - 1.5f);
  }
  Rgb around(Rgb colour, float spread);     // brighter or darker, a little off
  Words4 words(std::uint64_t block) const;  // apart from those above

 private:
  std::uint64_t seed_, stream_, next_ = 0;
  int used_ = 4;
  Words4 words_{};
};

// One number a pixel.
class Plane {
 public:
  explicit Plane(int size, float value = 0)
      : size_(size), values_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), value) {}

  int size() const { return size_; }
  float* row(int y) { return values_.data() + static_cast<std::ptrdiff_t>(y) * size_; }
  const float* row(int y) const { return values_.data() + static_cast<std::ptrdiff_t>(y) * size_; }

  // Adds smooth noise of ±amplitude whose waves are about that many pixels wide and high.
  void add_noise(float cell_x, float cell_y, float amplitude, PlateDraws& draws);

 private:
  int size_;
  std::vector<float> values_;
};

struct Light {
  float x = 0, y = 0, z = 1;  // where it comes from, a unit vector; z is towards the camera
  Rgb colour{1, 1, 1};
  float ambient = 0.5f, vignette = 0, blur = 0, noise = 0;
};

struct Canvas {
  explicit Canvas(int size) : red(size), green(size), blue(size), height(size), gloss(size), grain(size) {}

  int size() const { return red.size(); }
  float unit() const { return static_cast<float>(size()) / 480; }  // lengths are thought of at 480 pixels
  void blend(int x, int y, Rgb colour, float share) {
    float& r = red.row(y)[x];
    float& g = green.row(y)[x];
    float& b = blue.row(y)[x];
    r += (colour.red - r) * share;
    g += (colour.green - g) * share;
    b += (colour.blue - b) * share;
  }

  Plane red, green, blue;  // 0 … 1
  Plane height;            // in pixels
  Plane gloss;
  Plane grain;  // fine noise of ±1 that textures share
};

// Lets the light fall on the canvas, which is used up, and takes the picture.
Image develop(Canvas&& canvas, const Light& light, const PlateDraws& draws);

}  // namespace tandem
