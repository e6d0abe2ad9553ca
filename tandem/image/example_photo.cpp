// The scene is a function from a point to a color, evaluated four times per pixel. Points are in units of the
// image's height: u runs to the right from the middle, v downwards from the top edge. Each layer paints over
// the layers behind it.
#include "tandem/image/example_photo.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/parallel.h"

namespace tandem {
namespace {

struct Point {
  float u, v;
};

struct Paint {
  float red, green, blue;
  Paint operator*(float k) const { return {red * k, green * k, blue * k}; }
};

Paint mix(Paint a, Paint b, float t) {
  t = std::clamp(t, 0.0f, 1.0f);
  return {a.red + (b.red - a.red) * t, a.green + (b.green - a.green) * t, a.blue + (b.blue - a.blue) * t};
}

float smooth(float from, float to, float x) {
  const float t = std::clamp((x - from) / (to - from), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// A pseudorandom number in [0, 1) for a lattice point.
float lattice(int x, int y, uint32_t seed) {
  uint32_t h = uint32_t(x) * 0x8DA6B343u ^ uint32_t(y) * 0xD8163841u ^ seed * 0xCB1AB31Fu;
  h = (h ^ h >> 15) * 0x2C1B3C6Du;
  h = (h ^ h >> 12) * 0x297A2D39u;
  return float((h ^ h >> 15) >> 8) / 16777216.0f;
}

// Through 64 bits, because an image may be a million times wider than high.
int cell(float x) {
  return int(int64_t(std::floor(x)));
}

float noise(float x, float y, uint32_t seed) {
  const float fx = std::floor(x), fy = std::floor(y);
  const int ix = cell(x), iy = cell(y);
  const float tx = smooth(0, 1, x - fx), ty = smooth(0, 1, y - fy);
  const float top = lattice(ix, iy, seed) * (1 - tx) + lattice(ix + 1, iy, seed) * tx;
  const float bottom = lattice(ix, iy + 1, seed) * (1 - tx) + lattice(ix + 1, iy + 1, seed) * tx;
  return top * (1 - ty) + bottom * ty;
}

// Noise at several scales, in [0, 1).
float cloud_noise(float x, float y, int octaves, uint32_t seed) {
  float sum = 0, weight = 0.5f, total = 0;
  for (int i = 0; i < octaves; ++i, x *= 2.03f, y *= 2.03f, weight *= 0.5f) {
    sum += weight * noise(x, y, seed + uint32_t(i));
    total += weight;
  }
  return sum / total;
}

bool inside(Point p, float left, float top, float right, float bottom) {
  return p.u >= left && p.u < right && p.v >= top && p.v < bottom;
}

float distance(Point p, float u, float v) {
  return std::sqrt((p.u - u) * (p.u - u) + (p.v - v) * (p.v - v));
}

float fraction(float x) {
  return x - std::floor(x);
}

constexpr Point sun{0.47f, 0.17f};

Paint sky(Point p) {
  Paint paint = mix({58, 112, 190}, {236, 222, 200}, smooth(-0.05f, 0.56f, p.v));
  const float d = distance(p, sun.u, sun.v);
  paint = mix(paint, {255, 236, 190}, 0.75f * std::exp(-d * 5.5f));
  const float cloud = cloud_noise(p.u * 2.2f + 4, p.v * 6.5f, 5, 11);
  const float cover = smooth(0.5f, 0.72f, cloud) * smooth(0.5f, 0.2f, p.v);
  const float shade = cloud_noise(p.u * 2.2f + 4, p.v * 6.5f + 0.35f, 4, 11);
  paint = mix(paint, mix({255, 252, 246}, {176, 186, 204}, smooth(0.45f, 0.75f, shade)), 0.9f * cover);
  if (d < 0.055f) paint = mix({255, 250, 226}, {255, 238, 176}, d / 0.055f);
  return paint;
}

// The height of the mountains: noise mirrored at its middle, which gives peaks.
float crest(float u) {
  float sum = 0, scale = 1.9f, weight = 0.5f;
  for (uint32_t i = 0; i < 5; ++i, scale *= 2.1f, weight *= 0.45f)
    sum += weight * (1 - std::abs(2 * noise(u * scale + 7.3f, 0.5f, 23 + i) - 1));
  return sum;
}

void mountains(Point p, Paint& paint) {
  const float ridge = 0.56f - 0.27f * crest(p.u);
  if (p.v < ridge) return;
  // Lower down the ridges move sideways; where the crest rises towards the sun the slope is in shadow.
  const float spur =
      p.u + 0.10f * (cloud_noise(p.u * 9, p.v * 9, 3, 31) - 0.5f) * smooth(0, 0.08f, p.v - ridge);
  const float slope = crest(spur - 0.012f) - crest(spur + 0.012f);
  const float light =
      std::clamp(0.5f + 5 * slope + 0.5f * (cloud_noise(p.u * 30, p.v * 30, 3, 33) - 0.5f), 0.0f, 1.0f);
  const float snow_line = 0.30f + 0.14f * cloud_noise(p.u * 13, p.v * 13, 3, 37) + 0.03f * light;
  const Paint rock = p.v < snow_line ? mix({150, 166, 200}, {252, 250, 246}, light)
                                     : mix({78, 88, 118}, {156, 152, 160}, light);
  paint = mix(rock, {196, 204, 212}, smooth(0.36f, 0.60f, p.v) * 0.75f);  // haze
}

void hills(Point p, Paint& paint) {
  const float far_top = 0.545f + 0.045f * std::sin(p.u * 3.1f + 0.6f) + 0.012f * noise(p.u * 14, 1, 41);
  if (p.v > far_top) {  // woods: dark blobs, lit from the upper right
    const float wood = cloud_noise(p.u * 42, p.v * 60, 3, 43);
    paint = mix({52, 84, 60}, {112, 142, 84}, wood + 2 * (far_top + 0.02f - p.v));
  }
  const float near_top = 0.63f + 0.03f * std::sin(p.u * 2.3f - 1.2f);
  if (p.v > near_top) {  // a plowed field: furrows that converge with distance
    const float depth = (p.v - near_top) + 0.03f;
    const float furrow = std::sin((p.u - 0.9f) / depth * 3.5f);
    paint = mix({168, 150, 84}, {204, 186, 112}, 0.5f + 0.5f * furrow);
    paint = paint * (0.9f + 0.2f * cloud_noise(p.u * 50, p.v * 90, 3, 47));
  }
}

void meadow(Point p, Paint& paint) {
  const float top = 0.735f + 0.012f * std::sin(p.u * 4 + 2);
  if (p.v < top) return;
  const float blades = noise(p.u * 190 + 9 * noise(p.u * 12, p.v * 12, 51), p.v * 55, 53);
  paint = mix({58, 104, 38}, {134, 168, 70}, 0.25f + 0.7f * blades - 0.6f * (p.v - top));
  paint = paint * (0.85f + 0.3f * cloud_noise(p.u * 5, p.v * 9, 3, 57));
  // Flowers: a few bright dots on a lattice of cells.
  const float scale = 42;
  const int cell_u = cell(p.u * scale), cell_v = cell(p.v * scale);
  if (lattice(cell_u, cell_v, 61) > 0.86f) {
    const Point center{(float(cell_u) + 0.3f + 0.4f * lattice(cell_u, cell_v, 62)) / scale,
                       (float(cell_v) + 0.3f + 0.4f * lattice(cell_u, cell_v, 63)) / scale};
    if (distance(p, center.u, center.v) < 0.0045f)
      paint = lattice(cell_u, cell_v, 64) > 0.5f ? Paint{250, 244, 236} : Paint{244, 198, 60};
  }
  // The path from the door to the lower edge.
  const float middle = -0.225f + 0.35f * (p.v - 0.76f) * (p.v - 0.76f) * 4,
              half = 0.028f + 0.22f * (p.v - 0.76f);
  if (p.v > 0.76f && std::abs(p.u - middle) < half) {
    const float stones = cloud_noise(p.u * 70, p.v * 110, 3, 67);
    paint = mix({146, 124, 98}, {210, 192, 160}, stones);
  }
}

Paint bricks(Point p) {
  const float row = p.v / 0.0135f, shift = std::floor(row) * 0.5f, column = p.u / 0.034f + shift;
  const bool mortar = fraction(row) < 0.16f || fraction(column) < 0.07f;
  const float tone = lattice(cell(column), cell(row), 71);
  return mortar ? Paint{206, 194, 178} : mix({150, 70, 52}, {192, 104, 76}, tone);
}

void window(Point p, float left, float top, float width, float height, Paint& paint) {
  if (!inside(p, left - 0.008f, top - 0.008f, left + width + 0.008f, top + height + 0.014f)) return;
  paint = {240, 236, 226};  // frame and sill
  if (!inside(p, left, top, left + width, top + height)) return;
  const float across = (p.u - left) / width, down = (p.v - top) / height;
  if (std::abs(across - 0.5f) < 0.045f || std::abs(down - 0.42f) < 0.035f) return;
  const bool gleam = fraction((across + down * 0.8f) * 1.3f) < 0.28f;  // reflection of the sky
  paint = gleam ? Paint{150, 184, 214} : mix({62, 86, 112}, {36, 48, 66}, down);
}

void house(Point p, Paint& paint) {
  constexpr float left = -0.46f, right = -0.06f, eaves = 0.52f, ground = 0.765f, top = 0.335f;
  if (inside(p, -0.165f, 0.285f, -0.115f, 0.48f)) paint = bricks({p.u * 1.3f, p.v}) * 0.85f;  // chimney
  if (inside(p, -0.173f, 0.273f, -0.107f, 0.289f)) paint = {96, 84, 80};
  if (inside(p, left, eaves - 0.01f, right, ground)) {
    paint = bricks(p) * (p.v < eaves + 0.03f ? 0.68f : 1.0f);  // in the shadow of the eaves
    window(p, -0.415f, 0.57f, 0.085f, 0.105f, paint);
    window(p, -0.155f, 0.57f, 0.06f, 0.105f, paint);
    if (inside(p, -0.268f, 0.585f, -0.182f, ground)) paint = {236, 230, 216};
    if (inside(p, -0.26f, 0.593f, -0.19f, ground)) {
      const bool groove = fraction((p.u + 0.26f) / 0.0175f) < 0.14f;
      paint = groove ? Paint{24, 58, 58} : Paint{40, 94, 92};
      if (distance(p, -0.2f, 0.685f) < 0.0055f) paint = {240, 206, 110};
    }
  }
  // The roof: a trapezium of tiles.
  const float down = (p.v - top) / (eaves - top), inset = 0.11f * (1 - down);
  if (down >= 0 && down < 1 && p.u > left - 0.035f + inset && p.u < right + 0.035f - inset) {
    const float row = down * 12, column = p.u / 0.021f + std::floor(row) * 0.5f, t = fraction(column) - 0.5f;
    const float tone = lattice(cell(column), cell(row), 73);
    paint = mix({88, 56, 54}, {136, 82, 70}, tone * 0.8f + 0.2f) * (1.1f - 1.3f * t * t);
    if (fraction(row) > 0.8f - t * t) paint = paint * 0.55f;
    if (down > 0.965f) paint = {226, 220, 208};  // gutter
  }
}

void round_tree(Point p, float u, float ground, float size, uint32_t seed, Paint& paint) {
  if (std::abs(p.u - u) > 0.45f * size || p.v < ground - size || p.v > ground) return;
  const float trunk = (0.035f + 0.02f * smooth(ground - 0.08f * size, ground, p.v)) * size;
  if (std::abs(p.u - u) < trunk && p.v > ground - 0.4f * size) {
    const float bark = noise(p.u * 160, p.v * 22, seed);
    paint = mix({56, 42, 32}, {122, 96, 70}, bark * 0.7f + 0.4f * (p.u - u + trunk) / trunk - 0.2f);
  }
  constexpr float balls[][3] = {
      {0, -0.62f, 0.24f}, {-0.19f, -0.5f, 0.19f}, {0.19f, -0.52f, 0.19f}, {0.03f, -0.42f, 0.2f}};
  for (const auto& ball : balls) {
    const float cu = u + ball[0] * size, cv = ground + ball[1] * size, radius = ball[2] * size;
    const float ragged =
        radius * (0.84f + 0.34f * cloud_noise(p.u * 30 / size, p.v * 30 / size, 3, seed + 5));
    if (distance(p, cu, cv) > ragged) continue;
    const float light = 0.5f + 0.45f * ((p.u - cu) - (p.v - cv)) / radius;
    const float leaves = cloud_noise(p.u * 75, p.v * 75, 2, seed + 9);
    paint = mix({24, 54, 24}, {124, 156, 60}, 0.45f * light + 0.9f * leaves - 0.3f);
  }
}

void fir(Point p, float u, float ground, float size, uint32_t seed, Paint& paint) {
  if (std::abs(p.u - u) < 0.02f * size && p.v > ground - 0.1f * size && p.v < ground) paint = {70, 52, 40};
  const float height =
      (ground - 0.07f * size - p.v) / (0.75f * size);  // 0 at the lowest branch, 1 at the tip
  if (height < 0 || height > 1 || std::abs(p.u - u) > 0.3f * size) return;
  const float tier = fraction(height * 6),
              half = size * (0.2f * (1 - height) + 0.015f) * (1.15f - 0.5f * tier);
  const float needles = noise(p.u * 140, p.v * 140, seed);
  if (std::abs(p.u - u) > half * (0.88f + 0.24f * needles)) return;
  paint = mix({16, 44, 36}, {64, 104, 72}, 0.35f * needles + 0.5f * (1 - tier) + 0.3f * (p.u - u) / half);
}

void fence(Point p, Paint& paint) {
  const float gap_left = -0.288f, gap_right = -0.090f;  // where the path goes through
  if (p.u > gap_left && p.u < gap_right) return;
  const float pitch = 0.042f, across = fraction(p.u / pitch) - 0.5f;
  const float top = 0.815f + 0.36f * pitch * std::abs(across) * 2, bottom = 0.935f;
  if (std::abs(across) < 0.3f && p.v > top && p.v < bottom) {
    const float grain = noise(p.u * 300, p.v * 30, 83);
    paint = mix({206, 204, 198}, {250, 248, 242}, 0.55f + across + 0.3f * grain);
  } else if (inside(p, -9, 0.845f, 9, 0.858f) || inside(p, -9, 0.895f, 9, 0.908f)) {
    paint = {182, 180, 176};  // the rails, behind the pales
  }
}

Paint scene(Point p) {
  Paint paint{};
  if (p.v < 0.57f) paint = sky(p);  // further down the sky and the mountains are hidden
  if (p.v < 0.62f) mountains(p, paint);
  hills(p, paint);
  fir(p, -0.70f, 0.75f, 0.42f, 101, paint);
  fir(p, -0.57f, 0.755f, 0.30f, 107, paint);
  meadow(p, paint);
  house(p, paint);
  round_tree(p, 0.43f, 0.80f, 0.56f, 113, paint);
  fir(p, 0.14f, 0.765f, 0.26f, 127, paint);
  fence(p, paint);
  const float corner = p.u * p.u / 0.56f + (p.v - 0.5f) * (p.v - 0.5f) * 2;
  return paint * (1.02f - 0.14f * corner);  // a lens darkens the corners
}

uint8_t level(float x) {
  return uint8_t(std::clamp(x + 0.5f, 0.0f, 255.0f));
}

}  // namespace

Image example_photo(int64_t height, int64_t width) {
  Image image = make_image(height, width, 3);
  const auto render_pixel = [&](int64_t y, int64_t x) {
    constexpr int side = 2;  // samples per pixel along each axis
    Paint sum{0, 0, 0};
    for (int i = 0; i < side * side; ++i) {
      const float du = (float(i % side) + 0.5f) / side, dv = (float(i / side) + 0.5f) / side;
      const Paint paint =
          scene({(float(x) + du - 0.5f * float(width)) / float(height), (float(y) + dv) / float(height)});
      sum = {sum.red + paint.red, sum.green + paint.green, sum.blue + paint.blue};
    }
    // Sensor noise of a few levels.
    const float grain = 5 * (lattice(int(x), int(y), 97) - 0.5f);
    const Paint mean = sum * (1.0f / (side * side));
    image.at(y, x, 0) = level(mean.red + grain);
    image.at(y, x, 1) = level(mean.green + grain);
    image.at(y, x, 2) = level(mean.blue + grain);
  };
  parallel_for(height, 8, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y)
      for (int64_t x = 0; x < width; ++x) render_pixel(y, x);
  });
  return image;
}

}  // namespace tandem
