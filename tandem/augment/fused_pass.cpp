#include "tandem/augment/fused_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tandem/augment/blur.h"
#include "tandem/augment/spline.h"

namespace tandem::detail {
namespace {

// The interpolators write all channels of the pixel at a coordinate inside the image.
struct Nearest {
  const std::uint8_t* image;
  ImageSize size;
  int fraction;

  void operator()(std::int64_t column, std::int64_t row, std::uint8_t* out) const {
    const std::int64_t half = std::int64_t{1} << (fraction - 1);
    const std::int64_t x = (column + half) >> fraction, y = (row + half) >> fraction;
    const std::uint8_t* pixel = image + (y * size.width + x) * size.channels;
    std::copy(pixel, pixel + size.channels, out);
  }
};

struct Linear {
  const std::uint8_t* image;
  ImageSize size;
  int fraction;

  void operator()(std::int64_t column, std::int64_t row, std::uint8_t* out) const {
    const auto weight = [&](std::int64_t c) {
      return static_cast<std::int32_t>(c >> (fraction - weight_bits) & ((1 << weight_bits) - 1));
    };
    const std::int64_t x = column >> fraction, y = row >> fraction;
    const std::int32_t right = weight(column), down = weight(row);
    // A neighbor beyond the border has weight 0, so the pixel itself is read instead.
    const std::int64_t next = x + 1 < size.width ? size.channels : 0;
    const std::int64_t below = y + 1 < size.height ? std::int64_t{size.width} * size.channels : 0;
    const std::uint8_t* pixel = image + (y * size.width + x) * size.channels;
    for (int c = 0; c < size.channels; ++c, ++pixel)
      out[c] = static_cast<std::uint8_t>(
          interpolate_levels(pixel[0], pixel[next], pixel[below], pixel[below + next], right, down));
  }
};

struct Cubic {
  const float* coefficients;
  ImageSize size;
  int fraction;

  void operator()(std::int64_t column, std::int64_t row, std::uint8_t* out) const {
    const double one = 1.0 / static_cast<double>(std::int64_t{1} << fraction);
    const auto across = spline_taps<float>(static_cast<double>(column) * one, size.width);
    const auto down = spline_taps<float>(static_cast<double>(row) * one, size.height);
    for (int c = 0; c < size.channels; ++c) {
      const float level = spline_value(coefficients + c, size.width, size.channels, across, down);
      out[c] = static_cast<std::uint8_t>(std::clamp(std::lround(level), 0L, 255L));
    }
  }
};

// Rows of 16 to 32 bytes, such as those of digits, are copied by two vectors, which may overlap: faster than
// a call of memcpy.
constexpr std::size_t half_row = 16;
bool is_short(std::size_t bytes) {
  return bytes >= half_row && bytes <= 2 * half_row;
}
void copy_row(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  if (!is_short(bytes)) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, half_row);
  std::memcpy(to + bytes - half_row, from + bytes - half_row, half_row);
}

// Copies pixels in reverse order; `from` is the last one.
void copy_mirrored(std::uint8_t* to, const std::uint8_t* from, std::int64_t pixels, int channels) {
  if (channels == 1) {
    std::reverse_copy(from - (pixels - 1), from + 1, to);
    return;
  }
  for (std::int64_t i = 0; i < pixels; ++i, to += channels, from -= channels) std::copy_n(from, channels, to);
}

template <bool flips>
void move_rows(const SampledStep* moves, int count, const ImageSize& size, const std::uint8_t* in,
               std::uint8_t* out) {
  const std::size_t pixel = static_cast<std::size_t>(size.channels);
  const std::size_t bytes = static_cast<std::size_t>(size.width) * pixel;
  for (int y = 0; y < size.height; ++y) {
    const RowMove move = row_move<flips>(moves, count, size, y);
    std::uint8_t* const row = out + std::int64_t{y} * size.width * size.channels;
    const std::uint8_t* const from =
        in + (std::int64_t{move.row} * size.width + move.column(move.begin)) * size.channels;
    if (is_short(bytes)) {
      std::memset(row, 0, half_row);
      std::memset(row + bytes - half_row, 0, half_row);
    } else {
      std::memset(row, 0, move.begin * pixel);
      std::memset(row + move.end * pixel, 0, (size.width - move.end) * pixel);
    }
    if (flips && move.mirrored && move.begin < move.end)
      copy_mirrored(row + move.begin * pixel, from, move.end - move.begin, size.channels);
    else
      copy_row(row + move.begin * pixel, from, (move.end - move.begin) * pixel);
  }
}

// Applies shifts, skews and flips.
void move_rows(const SampledStep* moves, int count, const ImageSize& size, const std::uint8_t* in,
               std::uint8_t* out) {
  const bool flips = std::any_of(moves, moves + count,
                                 [](const SampledStep& move) { return move.kind == AugmentKind::flip; });
  if (flips)
    move_rows<true>(moves, count, size, in, out);
  else
    move_rows<false>(moves, count, size, in, out);
}

// Computes every output pixel at its source coordinates.
template <class Interpolator>
void resample_rows(const FusedPassParams& params, const Interpolator& interpolate) {
  const ImageSize& size = params.size;
  const SourceMap& map = params.steps[params.pass.resample].map;
  const std::int64_t max_column = std::int64_t{size.width - 1} << map.fraction;
  const std::int64_t max_row = std::int64_t{size.height - 1} << map.fraction;
  const int first = params.pass.resample + 1;
  std::memset(params.out, 0, static_cast<std::size_t>(size.bytes()));
  for (int y = 0; y < size.height; ++y) {
    const RowMove move = row_move<false>(params.steps + first, params.pass.moves_end - first, size, y);
    std::uint8_t* out = params.out + (std::int64_t{y} * size.width + move.begin) * size.channels;
    for (int x = move.begin; x < move.end; ++x, out += size.channels) {
      const std::int64_t column = map.column(x + move.offset, move.row);
      const std::int64_t row = map.row(x + move.offset, move.row);
      if (column >= 0 && column <= max_column && row >= 0 && row <= max_row) interpolate(column, row, out);
    }
  }
}

// The whole image is blurred, then the moves after it are applied.
void blur_and_move(const FusedPassParams& params, const std::uint8_t* source, AugmentScratch& scratch) {
  const int first = params.pass.resample + 1, moves = params.pass.moves_end - first;
  const bool applied = params.steps[params.pass.resample].applied;
  if (applied) {
    if (moves > 0) scratch.blurred.resize(static_cast<std::size_t>(params.size.bytes()));
    std::uint8_t* const to = moves > 0 ? scratch.blurred.data() : params.out;
    blur_image(params.recipe->steps[params.pass.resample].kernel, params.size, source, to, scratch.sums);
    source = to;
  }
  if (moves > 0 || !applied) move_rows(params.steps + first, moves, params.size, source, params.out);
}

// The image after a reflected shift is moved as row_move() says.
void reflect_and_move(const FusedPassParams& params, const std::uint8_t* source) {
  const auto [height, width, channels] = params.size;
  const SampledStep& step = params.steps[params.pass.resample];
  const int first = params.pass.resample + 1;
  std::memset(params.out, 0, static_cast<std::size_t>(params.size.bytes()));
  for (int y = 0; y < height; ++y) {
    const RowMove move = row_move<false>(params.steps + first, params.pass.moves_end - first, params.size, y);
    const std::uint8_t* const row =
        source + std::int64_t{reflected(move.row + step.dy, height)} * width * channels;
    std::uint8_t* out = params.out + (std::int64_t{y} * width + move.begin) * channels;
    for (int x = move.begin; x < move.end; ++x, out += channels)
      std::copy_n(row + std::int64_t{reflected(x + move.offset + step.dx, width)} * channels, channels, out);
  }
}

void resample_image(const FusedPassParams& params, AugmentScratch& scratch) {
  const SampledStep& step = params.steps[params.pass.resample];
  const std::uint8_t* source = moved_source(params, scratch);
  if (step.kind == AugmentKind::blur) return blur_and_move(params, source, scratch);
  if (step.kind == AugmentKind::reflected_shift) return reflect_and_move(params, source);
  switch (step.interpolation) {
    case Interpolation::nearest:
      return resample_rows(params, Nearest{source, params.size, step.map.fraction});
    case Interpolation::linear:
      return resample_rows(params, Linear{source, params.size, step.map.fraction});
    case Interpolation::cubic:
      scratch.coefficients.assign(source, source + params.size.bytes());
      spline_coefficients(scratch.coefficients.data(), params.size);
      return resample_rows(params, Cubic{scratch.coefficients.data(), params.size, step.map.fraction});
  }
}

void add_noise(std::int32_t noise, const RandomKey& key, std::uint8_t* out, std::int64_t bytes) {
  for (std::int64_t first = 0; first < bytes; first += 8) {
    const Words4 block = key.block(static_cast<std::uint32_t>(1 + first / 8));
    const auto count = static_cast<std::uint32_t>(std::min<std::int64_t>(bytes - first, 8));
    for (std::uint32_t i = 0; i < count; ++i)
      out[first + i] = static_cast<std::uint8_t>(noisy_level(out[first + i], noise, noise_bits(block, i)));
  }
}

}  // namespace

const std::uint8_t* moved_source(const FusedPassParams& params, AugmentScratch& scratch) {
  const FusedPass& pass = params.pass;
  if (pass.begin == pass.resample) return params.in;
  scratch.moved.resize(static_cast<std::size_t>(params.size.bytes()));
  move_rows(params.steps + pass.begin, pass.resample - pass.begin, params.size, params.in,
            scratch.moved.data());
  return scratch.moved.data();
}

void move_and_resample(const FusedPassParams& params, AugmentScratch& scratch) {
  const FusedPass& pass = params.pass;
  if (pass.resamples())
    resample_image(params, scratch);
  else
    move_rows(params.steps + pass.begin, pass.moves_end - pass.begin, params.size, params.in, params.out);
}

void run_fused_pass(const FusedPassParams& params, AugmentScratch& scratch) {
  move_and_resample(params, scratch);
  for (int i = params.pass.moves_end; i < params.pass.end; ++i)
    add_noise(params.steps[i].noise, key_of(params, i), params.out, params.size.bytes());
}

}  // namespace tandem::detail
