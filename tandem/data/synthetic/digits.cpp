// A digit is one of a few styles (control points on a 100×100 grid), bent, jittered, slanted, rotated and
// scaled, then rendered with a pen of varying width, blurred a little, and degraded with noise. The amounts
// are chosen so that, after training on 60,000 images, a linear model misclassifies about one image in nine
// and a perceptron of 200 hidden units one in a hundred.
#include "tandem/data/synthetic/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/data/shuffle.h"
#include "tandem/data/synthetic/digit_strokes.h"
#include "tandem/data/synthetic/render_counter.h"

namespace tandem {
namespace {

constexpr int side = 28;
constexpr std::uint32_t digit_operation = 0x44494749,
                        label_pass = 0x4C41424C;  // differ from those of other random streams
constexpr std::int64_t max_images = std::int64_t{1} << 32;
constexpr std::int64_t test_first = std::int64_t{1} << 31;

using Canvas = std::array<float, std::size_t{side} * side>;

// The random numbers of one image, in the order of the calls.
class DigitRng {
 public:
  explicit DigitRng(RandomKey key) : key_(key) {}

  float unit() {
    if (used_ == 4) {
      words_ = key_.block(next_block_++);
      used_ = 0;
    }
    return to_unit_float(words_.word[used_++]);
  }
  float between(float low, float high) { return low + (high - low) * unit(); }
  // Approximately standard normal, within ±3.
  float approx_normal() { return 2 * (unit() + unit() + unit() - 1.5f); }
  Words4 words(std::uint32_t block) const { return key_.block(0x80000000u + block); }

 private:
  RandomKey key_;
  std::uint32_t next_block_ = 0;
  int used_ = 4;
  Words4 words_{};
};

struct Point {
  float x, y;
};
Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y};
}
Point operator-(Point a, Point b) {
  return {a.x - b.x, a.y - b.y};
}
Point operator*(float s, Point a) {
  return {s * a.x, s * a.y};
}

// A piece of a stroke from a to b, along which the pen's radius changes linearly.
struct Segment {
  Point a, b;
  float radius_a, radius_b;
};

// Maps the grid to pixels around (0, 0): a slow wave bends the plane, then it is slanted, scaled and rotated.
class StrokeTransform {
 public:
  explicit StrokeTransform(DigitRng& rng) {
    wave_x_ = 6.5f * rng.approx_normal();
    wave_y_ = 5.0f * rng.approx_normal();
    phase_x_ = rng.between(0, 6.2831853f);
    phase_y_ = rng.between(0, 6.2831853f);
    jitter_ = rng.between(1.5f, 6.0f);
    const float height = rng.between(15, 21);
    const float width = height * rng.between(0.48f, 0.9f);
    const float slant = -0.12f + 0.19f * rng.approx_normal();
    const float angle = 0.14f * rng.approx_normal();
    const float cosine = std::cos(angle), sine = std::sin(angle);
    // rotation · slant · scale, per grid unit
    xx_ = cosine * width / 100;
    xy_ = (cosine * slant - sine) * height / 100;
    yx_ = sine * width / 100;
    yy_ = (sine * slant + cosine) * height / 100;
  }

  Point apply(GridPoint point, DigitRng& rng) const {
    float x = point.x - 50.0f + jitter_ * rng.approx_normal();
    float y = point.y - 50.0f + jitter_ * rng.approx_normal();
    const float bend_x = wave_x_ * std::sin(0.045f * y + phase_x_);
    const float bend_y = wave_y_ * std::sin(0.045f * x + phase_y_);
    x += bend_x;
    y += bend_y;
    return {xx_ * x + xy_ * y, yx_ * x + yy_ * y};
  }

 private:
  float wave_x_, wave_y_, phase_x_, phase_y_, jitter_;
  float xx_, xy_, yx_, yy_;
};

// Pen radius along a stroke: a base value, a wave, and often a thin end.
class Pen {
 public:
  explicit Pen(DigitRng& rng) {
    radius_ = rng.between(0.7f, 1.8f);
    wave_ = rng.between(0, 0.22f);
    frequency_ = rng.between(2, 7);
    phase_ = rng.between(0, 6.2831853f);
    taper_ = std::max(0.0f, rng.between(-0.3f, 0.45f));
  }

  // `along` goes from 0 to 1.
  float radius(float along) const {
    const float thin = taper_ * along * along * along;
    return radius_ * (1 - thin) * (1 + wave_ * std::sin(frequency_ * along + phase_));
  }

 private:
  float radius_, wave_, frequency_, phase_, taper_;
};

// A smooth curve through the points (cubic Hermite, tangents from the neighbors), sharp at corners.
void add_stroke(std::vector<Segment>& segments, std::span<const GridPoint> stroke,
                const StrokeTransform& transform, const Pen& pen, DigitRng& rng) {
  std::array<Point, max_stroke_points> points{};
  const std::size_t count = stroke.size();
  for (std::size_t i = 0; i < count; ++i) points[i] = transform.apply(stroke[i], rng);
  const auto tangent = [&](std::size_t i) -> Point {
    if (stroke[i].corner) return {0, 0};
    if (i == 0) return points[1] - points[0];
    if (i + 1 == count) return points[i] - points[i - 1];
    return 0.5f * (points[i + 1] - points[i - 1]);
  };
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const Point from = points[i], to = points[i + 1], leave = tangent(i), arrive = tangent(i + 1);
    const Point span = to - from;
    const float length = std::sqrt(span.x * span.x + span.y * span.y);
    const int pieces = std::clamp(static_cast<int>(length * 0.8f) + 1, 2, 12);
    Point last = from;
    const float start = static_cast<float>(i), whole = static_cast<float>(count - 1);
    float last_radius = pen.radius(start / whole);
    for (int piece = 1; piece <= pieces; ++piece) {
      const float t = static_cast<float>(piece) / static_cast<float>(pieces);
      const float t2 = t * t, t3 = t2 * t;
      const Point next = (2 * t3 - 3 * t2 + 1) * from + (t3 - 2 * t2 + t) * leave + (3 * t2 - 2 * t3) * to +
                         (t3 - t2) * arrive;
      const float radius = pen.radius((start + t) / whole);
      segments.push_back({last, next, last_radius, radius});
      last = next;
      last_radius = radius;
    }
  }
}

// Moves the center of the strokes to the center of the image, with a small random offset.
void center(std::vector<Segment>& segments, DigitRng& rng) {
  Point low = segments[0].a, high = low;
  for (const Segment& segment : segments)
    for (const Point point : {segment.a, segment.b}) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  const Point off{rng.between(-1.8f, 1.8f), rng.between(-1.8f, 1.8f)};
  const Point shift = Point{side / 2.0f, side / 2.0f} + off - 0.5f * (low + high);
  for (Segment& segment : segments) {
    segment.a = segment.a + shift;
    segment.b = segment.b + shift;
  }
}

// Antialiased: a pixel's level is the share the pen covers, with an edge `soft` pixels wide.
void render_segment(Canvas& canvas, const Segment& segment, float soft) {
  const float reach = std::max(segment.radius_a, segment.radius_b) + soft;
  const auto pixel = [](float at) { return std::clamp(static_cast<int>(std::floor(at)), 0, side - 1); };
  const int left = pixel(std::min(segment.a.x, segment.b.x) - reach);
  const int right = pixel(std::max(segment.a.x, segment.b.x) + reach);
  const int top = pixel(std::min(segment.a.y, segment.b.y) - reach);
  const int bottom = pixel(std::max(segment.a.y, segment.b.y) + reach);
  const Point along = segment.b - segment.a;
  const float inverse = 1 / std::max(along.x * along.x + along.y * along.y, 1e-6f);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      const Point from_a = Point{static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f} - segment.a;
      const float t = std::clamp((from_a.x * along.x + from_a.y * along.y) * inverse, 0.0f, 1.0f);
      const Point gap = from_a - t * along;
      const float radius = segment.radius_a + t * (segment.radius_b - segment.radius_a);
      const float distance = std::sqrt(gap.x * gap.x + gap.y * gap.y);
      const float covered = std::clamp((radius - distance) / soft + 0.5f, 0.0f, 1.0f);
      float& value = canvas.data()[y * side + x];
      value = std::max(value, covered);
    }
}

// Each pixel gets `share` of each of its two horizontal, then of its two vertical neighbors.
void blur(Canvas& canvas, float share) {
  for (const int step : {1, side}) {
    const Canvas before = canvas;
    const float* from = before.data();
    float* to = canvas.data();
    for (int y = step == side ? 1 : 0; y < (step == side ? side - 1 : side); ++y)
      for (int x = step == 1 ? 1 : 0; x < (step == 1 ? side - 1 : side); ++x) {
        const int at = y * side + x;
        to[at] = (1 - 2 * share) * from[at] + share * (from[at - step] + from[at + step]);
      }
  }
}

// Contrast, noise and rounding to bytes. Most noise is in the ink, a little on the paper.
void quantize(const Canvas& canvas, DigitRng& rng, std::uint8_t* pixels) {
  const float white = rng.between(190, 290);  // above 255 the middle of a stroke is saturated
  const float ink_noise = rng.between(0, 0.2f), paper_noise = std::max(0.0f, rng.between(-12, 14));
  for (std::size_t block = 0; block < canvas.size() / 16; ++block) {
    const Words4 words = rng.words(static_cast<std::uint32_t>(block));
    for (std::size_t i = 0; i < 16; ++i) {
      const std::uint32_t byte = words.word[i / 4] >> (8 * (i % 4)) & 0xFF;
      const float noise = static_cast<float>(byte) / 127.5f - 1;
      const float value = canvas[16 * block + i];
      const float level = white * value * (1 + ink_noise * noise) + paper_noise * noise;
      pixels[16 * block + i] = static_cast<std::uint8_t>(std::lround(std::clamp(level, 0.0f, 255.0f)));
    }
  }
}

std::int32_t label_of(std::uint64_t seed, std::uint32_t index) {
  return static_cast<std::int32_t>(Shuffle(10, seed, index / 10, label_pass)(index % 10));
}

void render_digit(std::uint64_t seed, std::uint32_t index, std::int32_t digit, std::vector<Segment>& segments,
                  std::uint8_t* pixels) {
  DigitRng rng({.seed = seed, .sample = index, .operation = digit_operation});
  const std::span<const DigitStyle> styles = digit_styles(digit);
  const float choice = rng.unit() * static_cast<float>(styles.size());
  const DigitStyle& style = styles[std::min(static_cast<std::size_t>(choice), styles.size() - 1)];
  const StrokeTransform transform(rng);
  const Pen pen(rng);
  segments.clear();
  for (const std::span<const GridPoint> stroke : style.strokes)
    if (!stroke.empty()) add_stroke(segments, stroke, transform, pen, rng);
  center(segments, rng);
  Canvas canvas{};
  const float soft = rng.between(0.9f, 1.5f);
  for (const Segment& segment : segments) render_segment(canvas, segment, soft);
  blur(canvas, rng.between(0, 0.14f));
  quantize(canvas, rng, pixels);
}

ImageSet render_digits(std::int64_t count, std::uint64_t seed, std::int64_t first,
                       detail::RenderCounter& counter) {
  check(count >= 0 && first >= 0 && first <= max_images && count <= max_images - first,
        "[digits] expected image indices from 0 to below {}, got {} images from index {}", max_images, count,
        first);
  ImageSet set{.images = Tensor::empty({count, side, side, 1}, DType::u8),
               .labels = Tensor::empty({count}, DType::i32),
               .classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}};
  std::uint8_t* pixels = set.images.data<std::uint8_t>();
  std::int32_t* labels = set.labels.data<std::int32_t>();
  parallel_for(count, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Segment> segments;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::uint32_t>(first + i);
      labels[i] = label_of(seed, index);
      render_digit(seed, index, labels[i], segments, pixels + i * side * side);
      counter.add();
    }
  });
  return set;
}

}  // namespace

ImageSet make_digits(std::int64_t count, std::uint64_t seed, std::int64_t first) {
  detail::RenderCounter counter(count);
  return render_digits(count, seed, first, counter);
}

DataSplit digits_split(std::int64_t train, std::int64_t test, std::uint64_t seed) {
  check(train >= 0 && train <= test_first && test >= 0 && test <= test_first,
        "[digits] expected 0 to {} training and test images, got {} and {}", test_first, train, test);
  detail::RenderCounter counter(train + test);
  return {.name = "digits",
          .train = render_digits(train, seed, 0, counter),
          .test = render_digits(test, seed, test_first, counter)};
}

}  // namespace tandem
