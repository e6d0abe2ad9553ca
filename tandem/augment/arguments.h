// Samples the arguments of one image from a recipe and defines the integer arithmetic of the operations.
// Everything random is a function of (seed, epoch, sample, operation), and the formulas use only operations
// with one defined rounding (integers, single products, explicit fma), never a·b + c, which a compiler may or
// may not contract. So the CPU and the GPU, and any two machines, give the same bits.
//
// An operation maps an 8-bit image to an 8-bit image. Shifts, skews and flips move whole pixels within rows,
// so a sequence of them is one RowMove per row. Rotations, zooms and crops interpolate between pixels with
// weights in 1/2048; a blur is a sum over neighbors.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "tandem/augment/recipe.h"
#include "tandem/augment/source_map.h"
#include "tandem/core/philox.h"
#include "tandem/image/image.h"

namespace tandem::detail {

// The arguments of one operation on one image.
struct SampledStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;
  bool applied = true;          // flip, blur: whether this image is
  std::int32_t dx = 0, dy = 0;  // shifts
  std::int32_t noise = 0;       // noise: the maximum, in 1/128 levels
  double tilt = 0;              // skew
  double value = 0;             // rotate: degrees; zoom: factor; crop: fraction of the area
  SourceMap map = {};           // rotate, zoom, crop; of a blur and a reflected shift the identity
  std::int32_t operation = -1;  // custom: its index among the user's operations
  double arguments[2] = {};     // custom
};

// Steps with given arguments.
[[gnu::always_inline]] constexpr SampledStep fixed_rotate(const ImageSize& size, double degrees,
                                                          Interpolation interpolation) {
  return {.kind = AugmentKind::rotate,
          .interpolation = interpolation,
          .value = degrees,
          .map = rotate_map(size, degrees)};
}
[[gnu::always_inline]] constexpr SampledStep fixed_zoom(const ImageSize& size, double factor,
                                                        Interpolation interpolation) {
  return {.kind = AugmentKind::zoom,
          .interpolation = interpolation,
          .value = factor,
          .map = zoom_map(size, factor)};
}
[[gnu::always_inline]] constexpr SampledStep fixed_crop(const ImageSize& size, double fraction, double left,
                                                        double top) {
  return {.kind = AugmentKind::crop, .value = fraction, .map = crop_map(size, fraction, left, top)};
}
constexpr SampledStep fixed_flip(bool applied) {
  return {.kind = AugmentKind::flip, .applied = applied};
}
[[gnu::always_inline]] constexpr SampledStep fixed_blur(const ImageSize& size, bool applied) {
  return {.kind = AugmentKind::blur, .applied = applied, .map = box_map(size, 1, 0, 0)};
}
constexpr SampledStep fixed_shift(std::int32_t dx, std::int32_t dy) {
  return {.kind = AugmentKind::shift, .dx = dx, .dy = dy};
}
[[gnu::always_inline]] constexpr SampledStep fixed_reflected_shift(const ImageSize& size, std::int32_t dx,
                                                                   std::int32_t dy) {
  return {.kind = AugmentKind::reflected_shift, .dx = dx, .dy = dy, .map = box_map(size, 1, 0, 0)};
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

// Half of the samples in even epochs, the others in odd ones.
constexpr bool is_flipped_now(const RandomKey& key) {
  const RandomKey first{.seed = key.seed, .epoch = 0, .sample = key.sample, .operation = key.operation};
  return first.block(0).word[0] >> 31 != key.epoch % 2;
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
    case AugmentKind::zoom:
      return fixed_zoom(size, sample_between(step.first, words.word[0], words.word[1]), step.interpolation);
    case AugmentKind::crop:
      return fixed_crop(size, sample_between(step.first, words.word[0], words.word[1]),
                        to_unit_double(words.word[2], 0), to_unit_double(words.word[3], 0));
    case AugmentKind::flip:
      if (step.alternating) return fixed_flip(is_flipped_now(key));
      return fixed_flip(to_unit_double(words.word[0], words.word[1]) < step.first.min);
    case AugmentKind::blur:
      return fixed_blur(size, to_unit_double(words.word[0], words.word[1]) < step.first.min);
    case AugmentKind::reflected_shift:
      return fixed_reflected_shift(size, sample_int(step.first, words.word[0]),
                                   sample_int(step.second, words.word[1]));
    case AugmentKind::custom:
      return {.kind = AugmentKind::custom,
              .operation = step.operation,
              .arguments = {sample_between(step.first, words.word[0], words.word[1]),
                            sample_between(step.second, words.word[2], words.word[3])}};
  }
  return {};
}

// "rotate 7.3", "shift 1 -2": a step as it would be written in a recipe.
std::string to_string(const SampledStep& step);

// The effect of moves (shifts, skews and flips) on one output row: column x of begin … end − 1 is read from
// column x + offset of input row `row`, or from offset − x if the row is mirrored; the others are 0.
struct RowMove {
  std::int32_t row = 0, offset = 0, begin = 0, end = 0;
  bool mirrored = false;

  constexpr std::int32_t column(std::int32_t x) const { return mirrored ? offset - x : offset + x; }
};

// ⌊row · tilt⌋, clamped so that adding it to a column cannot overflow.
constexpr std::int32_t skew_offset(std::int32_t row, double tilt) {
  const double exact = static_cast<double>(row) * tilt;
  constexpr double max_offset = 1 << 29;
  if (exact <= -max_offset || exact >= max_offset) return exact < 0 ? -(1 << 29) : 1 << 29;
  const auto truncated = static_cast<std::int32_t>(exact);
  return truncated - (static_cast<double>(truncated) > exact ? 1 : 0);
}

// The combined effect of `count` consecutive moves on output row y.
template <bool flips = true>
constexpr RowMove row_move(const SampledStep* moves, int count, const ImageSize& size, std::int32_t y) {
  RowMove move{.row = y, .offset = 0, .begin = 0, .end = size.width};
  for (int i = count - 1; i >= 0; --i) {
    if (flips && moves[i].kind == AugmentKind::flip) {
      if (!moves[i].applied) continue;
      move.mirrored = !move.mirrored;
      move.offset = size.width - 1 - move.offset;
      continue;
    }
    const bool shift = moves[i].kind == AugmentKind::shift;
    const std::int32_t offset = shift ? moves[i].dx : skew_offset(move.row, moves[i].tilt);
    if (shift) move.row += moves[i].dy;
    if (offset >= size.width || offset <= -size.width || move.row < 0 || move.row >= size.height)
      return {.row = 0, .offset = 0, .begin = 0, .end = 0};
    move.offset += offset;
    const std::int32_t first = move.mirrored ? move.offset - size.width + 1 : -move.offset;
    if (move.begin < first) move.begin = first;
    if (move.end > first + size.width) move.end = first + size.width;
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

// Where coordinate `at` is read along an axis of `side` pixels that is mirrored at its first and last one.
constexpr std::int32_t reflected(std::int32_t at, std::int32_t side) {
  const std::int32_t period = 2 * (side - 1);
  if (period == 0) return 0;
  at = (at < 0 ? -at : at) % period;
  return at < side ? at : period - at;
}

// The sum of the positive weights, by which a blur divides.
constexpr std::int32_t blur_divisor(const BlurKernel& kernel) {
  std::int32_t sum = 0;
  for (int i = 0; i < kernel.height * kernel.width; ++i)
    if (kernel.weights[i] > 0) sum += kernel.weights[i];
  return sum;
}

// The level of a blurred pixel from the correlation with the kernel and, for a gradient, with the transposed
// kernel (else 0). All products and sums are exact in f64, and a quotient and a square root have one defined
// rounding.
[[gnu::always_inline]] constexpr std::int32_t blurred_level(std::int32_t across, std::int32_t down,
                                                            bool gradient, double divisor) {
  const double x = across, y = down;
  const double value = (gradient ? std::sqrt(x * x + y * y) : x) / divisor + 0.5;
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<std::int32_t>(value);
}

constexpr bool is_move(AugmentKind kind) {
  return kind == AugmentKind::shift || kind == AugmentKind::skew || kind == AugmentKind::flip;
}
constexpr bool is_resampling(AugmentKind kind) {
  return kind == AugmentKind::rotate || kind == AugmentKind::zoom || kind == AugmentKind::crop ||
         kind == AugmentKind::blur || kind == AugmentKind::reflected_shift;
}

// Whether the step is a linear interpolation at the coordinates of its map.
constexpr bool is_linear(const AugmentStep& step) {
  return is_resampling(step.kind) && step.kind != AugmentKind::blur &&
         step.kind != AugmentKind::reflected_shift && step.interpolation == Interpolation::linear;
}

// Consecutive operations of a recipe that are fused into one pass over the image: every output pixel is
// computed directly from the input, without an intermediate image. A pass consists of moves (shifts, skews
// and flips), at most one operation that reads elsewhere (rotate, zoom, crop, blur or a reflected shift),
// further shifts and skews, then noise, or of one custom operation; a recipe is a sequence of passes. Members
// are step indices of the recipe.
struct FusedPass {
  int begin = 0;     // the first step
  int resample = 0;  // the one that resamples, after moves begin … resample − 1; moves_end if there is none
  int moves_end = 0;  // the end of the moves after it
  int end = 0;        // the end of the noise steps, and of the pass

  constexpr bool resamples() const { return resample < moves_end; }
};

// The pass that begins at step `begin`.
constexpr FusedPass fused_pass_at(const Recipe& recipe, int begin) {
  FusedPass pass{.begin = begin, .resample = begin, .moves_end = begin, .end = begin};
  if (recipe.steps[begin].kind == AugmentKind::custom) {
    pass.end = begin + 1;
    return pass;
  }
  const auto is = [&](int i, bool (*matches)(AugmentKind)) {
    return i < recipe.count && matches(recipe.steps[i].kind);
  };
  while (is(pass.resample, is_move)) ++pass.resample;
  pass.moves_end = pass.resample;
  if (is(pass.moves_end, is_resampling)) {
    ++pass.moves_end;
    while (is(pass.moves_end, is_move) && recipe.steps[pass.moves_end].kind != AugmentKind::flip)
      ++pass.moves_end;
  }
  pass.end = pass.moves_end;
  while (pass.end < recipe.count && recipe.steps[pass.end].kind == AugmentKind::noise) ++pass.end;
  return pass;
}

}  // namespace tandem::detail
