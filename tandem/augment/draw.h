// From a recipe to the arguments of one image, in whole numbers. Everything random is a function of (seed,
// epoch, sample, operation), and every formula here uses only operations that are rounded in one defined way
// (whole numbers, single products, explicit fma), never a·b + c, which compilers fuse or not as they like. So
// the CPU and the GPU, and any two machines, come to the same bits.
//
// An operation takes an 8-bit image to an 8-bit image. Shifts and skews move whole pixels within rows, so any
// number of them together are one RowMove a row; a rotation reads between pixels by weights of 1/2048.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tandem/augment/recipe.h"
#include "tandem/core/philox.h"

namespace tandem {

struct ImageSize {
  int height = 0, width = 0, channels = 1;

  constexpr std::int64_t bytes() const { return std::int64_t{height} * width * channels; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Where a rotation reads from: row x·yx + y·yy + y0, column x·xx + y·xy + x0, counted in 1/2^fraction pixels.
struct RotateMap {
  int fraction = 0;
  std::int64_t xx = 0, xy = 0, x0 = 0, yx = 0, yy = 0, y0 = 0;

  constexpr std::int64_t column(std::int64_t x, std::int64_t y) const { return x * xx + y * xy + x0; }
  constexpr std::int64_t row(std::int64_t x, std::int64_t y) const { return x * yx + y * yy + y0; }
};

struct DrawnStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;
  std::int32_t dx = 0, dy = 0;  // shift
  std::int32_t noise = 0;       // noise: the greatest, in 1/128 levels
  double tilt = 0;              // skew
  double degrees = 0;           // rotate
  RotateMap map = {};           // rotate
};

// Up to this many pixels a side, coordinates fit 32 bits with as many fraction bits as there is room for.
inline constexpr int small_side = 256;
inline constexpr int weight_bits = 11;

constexpr int coordinate_fraction(const ImageSize& size) {
  const int side = size.height > size.width ? size.height : size.width;
  return side <= small_side ? 29 - static_cast<int>(std::bit_width(static_cast<unsigned>(side))) : 30;
}

struct SineCosine {
  double sine, cosine;
};

// Of an angle in degrees; exact at multiples of 90.
[[gnu::always_inline]] constexpr SineCosine sine_cosine(double degrees) {
  const auto quarters = static_cast<std::int64_t>(std::fma(degrees, 1.0 / 90, degrees < 0 ? -0.5 : 0.5));
  const double x = std::fma(-90.0, static_cast<double>(quarters), degrees) * 0x1.1df46a2529d39p-6;  // π/180
  const double square = x * x;
  constexpr double s[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
                          -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
  constexpr double c[] = {-1.0 / 2,       1.0 / 24,        -1.0 / 720,        1.0 / 40320,
                          -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200};
  double sine = s[6], cosine = c[6];
  for (int i = 5; i >= 0; --i) {
    sine = std::fma(sine, square, s[i]);
    cosine = std::fma(cosine, square, c[i]);
  }
  sine = std::fma(sine * square, x, x);
  cosine = std::fma(cosine, square, 1.0);
  switch (quarters & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

constexpr std::int64_t round_to_whole(double value) {
  return static_cast<std::int64_t>(value < 0 ? value - 0.5 : value + 0.5);
}

// SciPy's: out[y][x] is read at [[cos, sin], [−sin, cos]] · ([y, x] − centre) + centre.
[[gnu::always_inline]] constexpr RotateMap rotate_map(const ImageSize& size, double degrees) {
  const int fraction = coordinate_fraction(size);
  const auto one = static_cast<double>(std::int64_t{1} << fraction);
  const auto [sine, cosine] = sine_cosine(degrees);
  const double cx = (size.width - 1) * 0.5, cy = (size.height - 1) * 0.5;
  RotateMap map{.fraction = fraction};
  map.xx = map.yy = round_to_whole(cosine * one);
  map.yx = round_to_whole(sine * one);
  map.xy = -map.yx;
  map.x0 = round_to_whole(std::fma(sine, cy, std::fma(-cosine, cx, cx)) * one);
  map.y0 = round_to_whole(std::fma(-sine, cx, std::fma(-cosine, cy, cy)) * one);
  return map;
}

// Fixed arguments, as tests and single calls use them.
[[gnu::always_inline]] constexpr DrawnStep fixed_rotate(const ImageSize& size, double degrees,
                                                        Interpolation interpolation) {
  return {.kind = AugmentKind::rotate,
          .interpolation = interpolation,
          .degrees = degrees,
          .map = rotate_map(size, degrees)};
}
constexpr DrawnStep fixed_shift(std::int32_t dx, std::int32_t dy) {
  return {.kind = AugmentKind::shift, .dx = dx, .dy = dy};
}
constexpr DrawnStep fixed_skew(double tilt) {
  return {.kind = AugmentKind::skew, .tilt = tilt};
}
constexpr DrawnStep fixed_noise(double amount) {
  return {.kind = AugmentKind::noise, .noise = static_cast<std::int32_t>(std::fma(amount, 255.0 * 128, 0.5))};
}

// Uniform between the bounds, both of which can be reached for whole numbers.
constexpr double draw_between(const Bounds& bounds, std::uint32_t high, std::uint32_t low) {
  return std::fma(to_unit_double(high, low), bounds.most - bounds.least, bounds.least);
}
constexpr std::int32_t draw_whole(const Bounds& bounds, std::uint32_t word) {
  const auto least = static_cast<std::int32_t>(bounds.least), most = static_cast<std::int32_t>(bounds.most);
  return least + static_cast<std::int32_t>(to_below(word, static_cast<std::uint32_t>(most - least) + 1));
}

// Block 0 of an operation's draws gives its arguments, the blocks from 1 on its noise. `key.operation` is the
// operation's place in the recipe.
[[gnu::always_inline]] constexpr DrawnStep draw_step(const AugmentStep& step, const ImageSize& size,
                                                     const DrawKey& key) {
  const Words4 words = key.block(0);
  switch (step.kind) {
    case AugmentKind::rotate:
      return fixed_rotate(size, draw_between(step.first, words.word[0], words.word[1]), step.interpolation);
    case AugmentKind::shift:
      return fixed_shift(draw_whole(step.first, words.word[0]), draw_whole(step.second, words.word[1]));
    case AugmentKind::skew:
      return fixed_skew(draw_between(step.first, words.word[0], words.word[1]));
    case AugmentKind::noise:
      return fixed_noise(draw_between(step.first, words.word[0], words.word[1]));
  }
  return {};
}

// What whole-pixel moves do to an output row: its columns begin … end − 1 come from `row`, `offset` columns
// to the right; the others are 0.
struct RowMove {
  std::int32_t row = 0, offset = 0, begin = 0, end = 0;
};

// ⌊row · tilt⌋, kept within what can be added to a column.
constexpr std::int32_t skew_offset(std::int32_t row, double tilt) {
  const double exact = static_cast<double>(row) * tilt;
  constexpr double far = 1 << 29;
  if (exact <= -far || exact >= far) return exact < 0 ? -(1 << 29) : 1 << 29;
  const auto whole = static_cast<std::int32_t>(exact);
  return whole - (static_cast<double>(whole) > exact ? 1 : 0);
}

// Output row y of `count` shifts and skews, done one after the other.
constexpr RowMove row_move(const DrawnStep* moves, int count, const ImageSize& size, std::int32_t y) {
  RowMove move{.row = y, .offset = 0, .begin = 0, .end = size.width};
  for (int i = count - 1; i >= 0; --i) {
    const bool shift = moves[i].kind == AugmentKind::shift;
    const std::int32_t far = shift ? moves[i].dx : skew_offset(move.row, moves[i].tilt);
    if (shift) move.row += moves[i].dy;
    if (far >= size.width || far <= -size.width || move.row < 0 || move.row >= size.height)
      return {.row = 0, .offset = 0, .begin = 0, .end = 0};
    move.offset += far;
    if (move.begin < -move.offset) move.begin = -move.offset;
    if (move.end > size.width - move.offset) move.end = size.width - move.offset;
    if (move.begin >= move.end) return {.row = 0, .offset = 0, .begin = 0, .end = 0};
  }
  return move;
}

// 16 random bits for byte `index` of an image: half a word of block 1 + index / 8.
constexpr std::uint32_t noise_bits(const Words4& block, std::uint32_t index) {
  return block.word[index / 2 % 4] >> (index % 2 * 16) & 0xffff;
}

// A level with noise, which lies evenly in ±`noise`: 65536 values. All within 32 bits.
constexpr std::int32_t noisy_level(std::int32_t level, std::int32_t noise, std::uint32_t bits) {
  const std::int32_t draw = 2 * static_cast<std::int32_t>(bits) - 65535;  // in 1/65536
  const std::int32_t added = draw * noise >> 8;                           // in 1/32768 levels
  const std::int32_t rounded = ((level << 15) + added + (1 << 14)) >> 15;
  return rounded < 0 ? 0 : rounded > 255 ? 255 : rounded;
}

// A level between four neighbours, by weights of 0 … 2047 to the right and down; halves are rounded up.
constexpr std::int32_t between_levels(std::int32_t p00, std::int32_t p01, std::int32_t p10, std::int32_t p11,
                                      std::int32_t right, std::int32_t down) {
  const std::int32_t above = (p00 << weight_bits) + (p01 - p00) * right;
  const std::int32_t below = (p10 << weight_bits) + (p11 - p10) * right;
  return ((above << weight_bits) + (below - above) * down + (1 << (2 * weight_bits - 1))) >>
         (2 * weight_bits);
}

// Consecutive operations that are evaluated together, output pixel by output pixel: moves, at most one
// rotation, moves, noise. Steps begin … rotation − 1 are moves, then the rotation if there is one (else
// rotation is moves_end), moves up to moves_end − 1, noise up to end − 1.
struct AugmentPass {
  int begin = 0, rotation = 0, moves_end = 0, end = 0;

  constexpr bool rotates() const { return rotation < moves_end; }
};

// The pass that begins at step `begin`.
constexpr AugmentPass pass_from(const Recipe& recipe, int begin) {
  AugmentPass pass{.begin = begin, .rotation = begin, .moves_end = begin, .end = begin};
  const auto moves = [&](int i) {
    return i < recipe.count &&
           (recipe.steps[i].kind == AugmentKind::shift || recipe.steps[i].kind == AugmentKind::skew);
  };
  while (moves(pass.rotation)) ++pass.rotation;
  pass.moves_end = pass.rotation;
  if (pass.moves_end < recipe.count && recipe.steps[pass.moves_end].kind == AugmentKind::rotate) {
    ++pass.moves_end;
    while (moves(pass.moves_end)) ++pass.moves_end;
  }
  pass.end = pass.moves_end;
  while (pass.end < recipe.count && recipe.steps[pass.end].kind == AugmentKind::noise) ++pass.end;
  return pass;
}

}  // namespace tandem
