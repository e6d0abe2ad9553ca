#include "tandem/augment/fast_pass.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tandem/core/simd.h"

namespace tandem {
namespace {

// A word a pixel: {itself, right, below, below right}, so that interpolation needs one load. What stands for
// a neighbour beyond the border does not matter, its weight is 0.
void pack_quads(const std::uint8_t* in, int width, int count, std::uint32_t* quads) {
  using Bytes = Vector<std::uint8_t, 16>;
  using Pairs = Vector<std::uint16_t, 16>;
  const auto load = [](const std::uint8_t* from) { return *reinterpret_cast<const Bytes*>(from); };
  const auto low = [](Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto high = [](Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  };
  const auto store = [&](std::uint32_t* to, Bytes above, Bytes below) {
    const auto a = reinterpret_cast<Pairs>(above), b = reinterpret_cast<Pairs>(below);
    *reinterpret_cast<Pairs*>(to) = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    *reinterpret_cast<Pairs*>(to + 4) = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  };
  int i = 0;
  for (; i + width + 17 <= count; i += 16) {
    const Bytes here = load(in + i), right = load(in + i + 1);
    const Bytes below = load(in + i + width), corner = load(in + i + width + 1);
    store(quads + i, low(here, right), low(below, corner));
    store(quads + i + 8, high(here, right), high(below, corner));
  }
  for (; i < count; ++i) {
    const auto at = [&](int place) { return std::uint32_t{place < count ? in[place] : std::uint8_t{0}}; };
    quads[i] = at(i) | at(i + 1) << 8 | at(i + width) << 16 | at(i + width + 1) << 24;
  }
}

// Where each output pixel reads: the place of its quad, −1 outside, and the coordinate, of which
// interpolation needs the fraction.
struct Reads {
  std::int32_t* places;
  std::uint32_t *columns, *rows;
};

// Those of output row y, for the columns the moves leave. The last vector may reach beyond them.
template <std::size_t bytes>
[[gnu::always_inline]] inline void place_row(const RotateMap& map, const RowMove& move, const ImageSize& size,
                                             int y, const Reads& reads) {
  using V = Vector<std::uint32_t, bytes>;
  using W = Vector<std::int32_t, bytes>;
  constexpr int lanes = bytes / sizeof(std::uint32_t);
  V lane{};
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) lane[i] = static_cast<std::uint32_t>(i);
  // All modulo 2³², far from half of it: the highest bit is the sign.
  const auto xx = static_cast<std::uint32_t>(map.xx), yx = static_cast<std::uint32_t>(map.yx);
  const int start = move.begin + move.offset, first = y * size.width;
  V column = lane * xx + static_cast<std::uint32_t>(map.column(start, move.row));
  V row = lane * yx + static_cast<std::uint32_t>(map.row(start, move.row));
  const auto fraction = static_cast<std::uint32_t>(map.fraction);
  const auto width = static_cast<std::uint32_t>(size.width);
  const std::uint32_t most_column = (width - 1) << fraction;
  const std::uint32_t most_row = static_cast<std::uint32_t>(size.height - 1) << fraction;
  for (int i = first + move.begin; i < first + move.end; i += lanes) {
    // Comparing wide vectors is what compilers do one by one; the signs of differences tell the same.
    const auto outside = reinterpret_cast<W>(column | (most_column - column) | row | (most_row - row)) >> 31;
    *reinterpret_cast<V*>(reads.places + i) =
        ((row >> fraction) * width + (column >> fraction)) | reinterpret_cast<V>(outside);
    *reinterpret_cast<V*>(reads.columns + i) = column;
    *reinterpret_cast<V*>(reads.rows + i) = row;
    column += static_cast<std::uint32_t>(lanes) * xx;
    row += static_cast<std::uint32_t>(lanes) * yx;
  }
  *reinterpret_cast<V*>(reads.places + first + move.end) = ~V{};  // what the last vector wrote too much
}

// between_levels() of the vector of pixels from `first` on, in place of their columns.
template <std::size_t bytes>
[[gnu::always_inline]] inline void interpolate(const std::uint32_t* quads, const Reads& reads,
                                               std::size_t first, std::uint32_t fraction) {
  using V = Vector<std::uint32_t, bytes>;
  constexpr std::uint32_t one = 1 << weight_bits;
  const std::int32_t* const places = reads.places + first;
  V quad;
  if constexpr (bytes == 16)
    quad = V{quads[places[0]], quads[places[1]], quads[places[2]], quads[places[3]]};
  else
    quad = *reinterpret_cast<const V*>(places);  // loaded already
  auto* const column = reinterpret_cast<V*>(reads.columns + first);
  const V right = *column >> (fraction - weight_bits) & (one - 1), left = one - right;
  const V down = *reinterpret_cast<V*>(reads.rows + first) >> (fraction - weight_bits) & (one - 1);
  const V above = (quad & 255) * left + (quad >> 8 & 255) * right;
  const V below = (quad >> 16 & 255) * left + (quad >> 24) * right;
  *column = (above * (one - down) + below * down + one * one / 2) >> (2 * weight_bits);
}

// Loops over bytes stand in functions of their own with plain arguments: a byte that is written could change
// whatever a lambda has captured, and no compiler would vectorise that.
[[gnu::always_inline]] inline void to_bytes(const std::uint32_t* __restrict levels,
                                            std::uint8_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(levels[i]);
}

// noisy_level() with its shifts drawn together: level + (bits · factor + start) / 2²³, where factor is
// 2 · noise and start 2²² − 65535 · noise.
typedef std::uint16_t Half __attribute__((may_alias));
[[gnu::always_inline]] inline void add_halves(const Half* __restrict halves, std::uint32_t factor,
                                              std::uint32_t start, std::uint8_t* __restrict levels,
                                              std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t level = levels[i] + (static_cast<std::int32_t>(halves[i] * factor + start) >> 23);
    levels[i] = static_cast<std::uint8_t>(std::clamp(level, 0, 255));
  }
}

// First all moves, then all places, then all loads: what has just been computed need not be waited for. Not
// inlined, so that noise and rotation do not share their registers.
[[gnu::noinline]] void rotate_small(const PassWork& work, AugmentScratch& scratch) {
  constexpr std::size_t beyond = 16;  // lanes of the widest vector
  const ImageSize size = work.size;
  const auto count = static_cast<std::size_t>(size.bytes());
  scratch.quads.resize(count + 1);
  scratch.columns.resize(count + beyond);
  scratch.rows.resize(count + beyond);
  scratch.places.assign(count + beyond, -1);
  scratch.quads[0] = 0;  // all that is outside
  const std::uint32_t* const quads = scratch.quads.data() + 1;
  pack_quads(moved_source(work, scratch), size.width, static_cast<int>(count), scratch.quads.data() + 1);
  const RotateMap map = work.steps[work.pass.rotation].map;
  const int first = work.pass.rotation + 1;
  RowMove moves[small_side];
  for (int y = 0; y < size.height; ++y)
    moves[y] = row_move(work.steps + first, work.pass.moves_end - first, size, y);
  const Reads reads{scratch.places.data(), scratch.columns.data(), scratch.rows.data()};
  std::uint8_t* const out = work.out;
  with_simd([ =, &moves ]<std::size_t bytes>() __attribute__((always_inline)) {
    for (int y = 0; y < size.height; ++y) place_row<bytes>(map, moves[y], size, y, reads);
    if constexpr (bytes > 16)
      for (std::size_t i = 0; i < count; ++i)
        reads.places[i] = static_cast<std::int32_t>(quads[reads.places[i]]);
    for (std::size_t i = 0; i < count; i += bytes / sizeof(std::uint32_t))
      interpolate<bytes>(quads, reads, i, static_cast<std::uint32_t>(map.fraction));
    to_bytes(reads.columns, out, count);
  });
}

[[gnu::noinline]] void add_noise_fast(std::int32_t noise, const DrawKey& key, std::uint8_t* out,
                                      std::int64_t count, AugmentScratch& scratch) {
  constexpr std::int64_t piece = 4096;  // bytes whose bits stay in the first cache
  scratch.bits.resize(piece / 2);
  std::uint32_t* const words = scratch.bits.data();
  static_assert(std::endian::native == std::endian::little && piece / 8 % philox_group == 0);
  const auto factor = static_cast<std::uint32_t>(2 * noise);
  const std::uint32_t start = (1u << 22) - 65535u * static_cast<std::uint32_t>(noise);
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    const auto present = static_cast<std::uint32_t>(std::min(piece, count - begin));
    const auto first = static_cast<std::uint32_t>(1 + begin / 8);
    philox_blocks(key.counter(first), key.seed, (present + 7) / 8, words);
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      add_halves(reinterpret_cast<const Half*>(words), factor, start, out + begin, present);
    });
  }
}

}  // namespace

void run_fast_pass(const PassWork& work, AugmentScratch& scratch) {
  const AugmentPass& pass = work.pass;
  const ImageSize& size = work.size;
  if (pass.rotates() && work.steps[pass.rotation].interpolation == Interpolation::linear &&
      size.channels == 1 && std::max(size.height, size.width) <= small_side)
    rotate_small(work, scratch);
  else
    move_and_rotate(work, scratch);
  for (int i = pass.moves_end; i < pass.end; ++i)
    add_noise_fast(work.steps[i].noise, key_of(work, i), work.out, size.bytes(), scratch);
}

}  // namespace tandem
