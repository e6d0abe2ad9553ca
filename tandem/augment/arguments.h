// Samples the arguments of one image from a recipe and defines the integer arithmetic of the operations.
// Everything random is a function of (seed, epoch, sample, operation), and the formulas use only operations
// with one defined rounding (integers, single products, explicit fma), never a·b + c, which a compiler may or
// may not contract. So the CPU and the GPU, and any two machines, give the same bits.
//
// An operation maps an 8-bit image to an 8-bit image. Shifts and skews move whole pixels within rows, so a
// sequence of them is one RowMove per row; a rotation interpolates between pixels with weights in 1/2048.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "tandem/augment/recipe.h"
#include "tandem/core/philox.h"
#include "tandem/image/image.h"

namespace tandem::detail {

// The source coordinates of a rotation: row x·yx + y·yy + y0, column x·xx + y·xy + x0, in 1/2^fraction
// pixels.
struct RotateMap {
  int fraction = 0;
  std::int64_t xx = 0, xy = 0, x0 = 0, yx = 0, yy = 0, y0 = 0;

  constexpr std::int64_t column(std::int64_t x, std::int64_t y) const { return x * xx + y * xy + x0; }
  constexpr std::int64_t row(std::int64_t x, std::int64_t y) const { return x * yx + y * yy + y0; }
};

// The arguments of one operation on one image.
struct SampledStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;
  std::int32_t dx = 0, dy = 0;  // shift
  std::int32_t noise = 0;       // noise: the maximum, in 1/128 levels
  double tilt = 0;              // skew
  double degrees = 0;           // rotate
  RotateMap map = {};           // rotate
};

// Up to this many pixels per side, coordinates fit 32 bits; they use all remaining bits for the fraction.
inline constexpr int max_small_side = 256;
inline constexpr int weight_bits = 11;

constexpr int coordinate_fraction(const ImageSize& size) {
  const int side = size.height > size.width ? size.height : size.width;
  return side <= max_small_side ? 29 - static_cast<int>(std::bit_width(static_cast<unsigned>(side))) : 30;
}

struct SineCosine {
  double sine, cosine;
};

// Sine and cosine of an angle in degrees; exact at multiples of 90.
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

// Rounds to nearest, halves away from zero.
constexpr std::int64_t round_to_int(double value) {
  return static_cast<std::int64_t>(value < 0 ? value - 0.5 : value + 0.5);
}

// SciPy's definition: out[y][x] is read at [[cos, sin], [−sin, cos]] · ([y, x] − center) + center.
[[gnu::always_inline]] constexpr RotateMap rotate_map(const ImageSize& size, double degrees) {
  const int fraction = coordinate_fraction(size);
  const auto one = static_cast<double>(std::int64_t{1} << fraction);
  const auto [sine, cosine] = sine_cosine(degrees);
  const double cx = (size.width - 1) * 0.5, cy = (size.height - 1) * 0.5;
  RotateMap map{.fraction = fraction};
  map.xx = map.yy = round_to_int(cosine * one);
  map.yx = round_to_int(sine * one);
  map.xy = -map.yx;
  map.x0 = round_to_int(std::fma(sine, cy, std::fma(-cosine, cx, cx)) * one);
  map.y0 = round_to_int(std::fma(-sine, cx, std::fma(-cosine, cy, cy)) * one);
  return map;
}

// Steps with given arguments.
[[gnu::always_inline]] constexpr SampledStep fixed_rotate(const ImageSize& size, double degrees,
                                                          Interpolation interpolation) {
  return {.kind = AugmentKind::rotate,
          .interpolation = interpolation,
          .degrees = degrees,
          .map = rotate_map(size, degrees)};
}
constexpr SampledStep fixed_shift(std::int32_t dx, std::int32_t dy) {
  return {.kind = AugmentKind::shift, .dx = dx, .dy = dy};
}
constexpr SampledStep fixed_skew(double tilt) {
  return {.kind = AugmentKind::skew, .tilt = tilt};
}
constexpr SampledStep fixed_noise(double amount) {
  return {.kind = AugmentKind::noise, .noise = static_cast<std::int32_t>(std::fma(amount, 255.0 * 128, 0.5))};
}

// Uniform in [min, max) for real numbers, in [min, max] for integers.
constexpr double sample_between(const Bounds& bounds, std::uint32_t high, std::uint32_t low) {
  return std::fma(to_unit_double(high, low), bounds.max - bounds.min, bounds.min);
}
constexpr std::int32_t sample_int(const Bounds& bounds, std::uint32_t word) {
  const auto min = static_cast<std::int32_t>(bounds.min), max = static_cast<std::int32_t>(bounds.max);
  return min + static_cast<std::int32_t>(to_below(word, static_cast<std::uint32_t>(max - min) + 1));
}

// Samples the arguments of one operation. `key.operation` is its index in the recipe. Random block 0 of the
// key gives the arguments; the blocks from 1 on give the noise.
[[gnu::always_inline]] constexpr SampledStep sample_step(const AugmentStep& step, const ImageSize& size,
                                                         const RandomKey& key) {
  const Words4 words = key.block(0);
  switch (step.kind) {
    case AugmentKind::rotate:
      return fixed_rotate(size, sample_between(step.first, words.word[0], words.word[1]), step.interpolation);
    case AugmentKind::shift:
      return fixed_shift(sample_int(step.first, words.word[0]), sample_int(step.second, words.word[1]));
    case AugmentKind::skew:
      return fixed_skew(sample_between(step.first, words.word[0], words.word[1]));
    case AugmentKind::noise:
      return fixed_noise(sample_between(step.first, words.word[0], words.word[1]));
  }
  return {};
}

// "rotate 7.3", "shift 1 -2": a step as it would be written in a recipe.
std::string to_string(const SampledStep& step);

// The effect of shifts and skews on one output row: columns begin … end − 1 are read from input row `row`,
// `offset` columns to the right; the others are 0.
struct RowMove {
  std::int32_t row = 0, offset = 0, begin = 0, end = 0;
};

// ⌊row · tilt⌋, clamped so that adding it to a column cannot overflow.
constexpr std::int32_t skew_offset(std::int32_t row, double tilt) {
  const double exact = static_cast<double>(row) * tilt;
  constexpr double max_offset = 1 << 29;
  if (exact <= -max_offset || exact >= max_offset) return exact < 0 ? -(1 << 29) : 1 << 29;
  const auto truncated = static_cast<std::int32_t>(exact);
  return truncated - (static_cast<double>(truncated) > exact ? 1 : 0);
}

// The combined effect of `count` consecutive shifts and skews on output row y.
constexpr RowMove row_move(const SampledStep* moves, int count, const ImageSize& size, std::int32_t y) {
  RowMove move{.row = y, .offset = 0, .begin = 0, .end = size.width};
  for (int i = count - 1; i >= 0; --i) {
    const bool shift = moves[i].kind == AugmentKind::shift;
    const std::int32_t offset = shift ? moves[i].dx : skew_offset(move.row, moves[i].tilt);
    if (shift) move.row += moves[i].dy;
    if (offset >= size.width || offset <= -size.width || move.row < 0 || move.row >= size.height)
      return {.row = 0, .offset = 0, .begin = 0, .end = 0};
    move.offset += offset;
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

// A level plus uniform noise within ±`noise`, one of 65536 values. No intermediate result exceeds 32 bits.
constexpr std::int32_t noisy_level(std::int32_t level, std::int32_t noise, std::uint32_t bits) {
  const std::int32_t uniform = 2 * static_cast<std::int32_t>(bits) - 65535;  // in 1/65536
  const std::int32_t added = uniform * noise >> 8;                           // in 1/32768 levels
  const std::int32_t rounded = ((level << 15) + added + (1 << 14)) >> 15;
  return rounded < 0 ? 0 : rounded > 255 ? 255 : rounded;
}

// Bilinear interpolation of four neighbors with weights of 0 … 2047 to the right and down; halves are rounded
// up.
constexpr std::int32_t interpolate_levels(std::int32_t p00, std::int32_t p01, std::int32_t p10,
                                          std::int32_t p11, std::int32_t right, std::int32_t down) {
  const std::int32_t above = (p00 << weight_bits) + (p01 - p00) * right;
  const std::int32_t below = (p10 << weight_bits) + (p11 - p10) * right;
  return ((above << weight_bits) + (below - above) * down + (1 << (2 * weight_bits - 1))) >>
         (2 * weight_bits);
}

// Consecutive operations of a recipe that are fused into one pass over the image: every output pixel is
// computed directly from the input, without an intermediate image. A pass consists of moves (shifts and
// skews), at most one rotation, further moves, then noise; a recipe is a sequence of passes. Members are step
// indices of the recipe.
struct FusedPass {
  int begin = 0;     // the first step
  int rotation = 0;  // the rotation, after the moves begin … rotation − 1; equals moves_end if there is none
  int moves_end = 0;  // the end of the moves after the rotation
  int end = 0;        // the end of the noise steps, and of the pass

  constexpr bool has_rotation() const { return rotation < moves_end; }
};

// The pass that begins at step `begin`.
constexpr FusedPass fused_pass_at(const Recipe& recipe, int begin) {
  FusedPass pass{.begin = begin, .rotation = begin, .moves_end = begin, .end = begin};
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

}  // namespace tandem::detail
