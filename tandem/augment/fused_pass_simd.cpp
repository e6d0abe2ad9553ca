#include "tandem/augment/fused_pass_simd.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

// Packs {above, below} for each pixel. The last vector may overlap the one before: it ends with the last
// pixel.
void pair_rows(const std::uint8_t* above, const std::uint8_t* below, int count, std::uint16_t* pairs) {
  using Bytes = Vector<std::uint8_t, 16>;
  constexpr int lanes = sizeof(Bytes);
  if (count < lanes) {
    for (int i = 0; i < count; ++i) pairs[i] = static_cast<std::uint16_t>(above[i] | below[i] << 8);
    return;
  }
  for (int i = 0; i < count; i += lanes) {
    const int at = std::min(i, count - lanes);
    const Bytes a = *reinterpret_cast<const Bytes*>(above + at);
    const Bytes b = *reinterpret_cast<const Bytes*>(below + at);
    auto* const to = reinterpret_cast<Bytes*>(pairs + at);
    to[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    to[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

// The source pixels of a linear interpolation. A pixel and its neighbors to the right, below, and below right
// are two adjacent pairs, so that interpolation needs one load of 32 bits: a quad. Pair p + 1 belongs to
// pixel p; pairs −1 and 0 are 0, and offset −1 is used for everything outside the image. The value of a
// neighbor beyond the border does not matter, because its weight is 0.
struct GatherTable {
  const std::uint16_t* pairs;
  std::int32_t* offsets;   // of the pair of each output pixel
  std::uint32_t* weights;  // to the right in the lower 16 bits, down in the upper
  std::uint32_t* quads;

  std::uint32_t quad(std::int32_t offset) const {
    std::uint32_t word;
    std::memcpy(&word, pairs + offset, sizeof(word));
    return word;
  }
};

constexpr std::size_t min_bytes = 16, max_bytes = 64;  // bytes of a vector, and pixels of a group
constexpr std::size_t lookahead =
    2 * max_bytes;  // quads are gathered this many pixels before they are needed

// The arrays are aligned, and their distance modulo 4 KiB is half a page: a load stalls if its address equals
// that of a recent store modulo 4 KiB (4K aliasing).
GatherTable make_gather_table(const std::uint16_t* pairs, std::size_t count,
                              std::vector<std::uint32_t>& words) {
  constexpr std::size_t page = 1024, line = 16;
  const std::size_t stride = (count + lookahead + max_bytes + page - 1) / page * page + page / 2;
  words.resize(3 * stride + line);
  std::uint32_t* const first = words.data() + (0 - reinterpret_cast<std::uintptr_t>(words.data())) / 4 % line;
  return {pairs, reinterpret_cast<std::int32_t*>(first), first + stride, first + 2 * stride};
}

// Computes the offsets and weights of all output pixels, row by row. The last vector of a row may extend into
// the next row, which is written after it.
template <std::size_t bytes>
[[gnu::always_inline]] inline void compute_offsets(const SourceMap& map, const RowMove* moves,
                                                   const ImageSize& size, const GatherTable& table) {
  using V = Vector<std::uint32_t, bytes>;
  using W = Vector<std::int32_t, bytes>;
  constexpr int lanes = bytes / sizeof(std::uint32_t);
  V lane{};
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) lane[i] = static_cast<std::uint32_t>(i);
  // All arithmetic is modulo 2³², and all values are far below 2³¹: the highest bit is the sign.
  const auto word = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const std::uint32_t xx = word(map.xx), xy = word(map.xy), x0 = word(map.x0);
  const std::uint32_t yx = word(map.yx), yy = word(map.yy), y0 = word(map.y0);
  const std::uint32_t width = word(size.width), weight_mask = (1 << weight_bits) - 1;
  const std::uint32_t max_column = (width - 1) << map.fraction;
  const std::uint32_t max_row = word(size.height - 1) << map.fraction;
  const std::uint32_t shift = word(map.fraction - weight_bits);
  const int columns = size.width;
  const V outside_offset =
      V{} - std::min(width, 1u);  // −1, computed so that the compiler does not turn the loops into memset
  const V lane_xx = lane * xx + x0, lane_yx = lane * yx + y0;
  std::int32_t* offsets = table.offsets;
  std::uint32_t* weights = table.weights;
  for (const RowMove* const end = moves + size.height; moves != end; ++moves) {
    const RowMove move = *moves;
    const std::uint32_t start = word(move.begin + move.offset), y = word(move.row);
    V column = lane_xx + (start * xx + y * xy);
    V row = lane_yx + (start * yx + y * yy);
    *reinterpret_cast<V*>(offsets) = outside_offset;
    for (int x = lanes; x < move.begin; x += lanes) *reinterpret_cast<V*>(offsets + x) = outside_offset;
    for (int x = move.begin; x < move.end; x += lanes) {
      // Compilers split comparisons of wide vectors into scalar ones; the signs of differences are
      // equivalent.
      const auto outside = reinterpret_cast<W>(column | (max_column - column) | row | (max_row - row)) >> 31;
      const V c = column >> shift, r = row >> shift;
      *reinterpret_cast<V*>(offsets + x) =
          ((r >> weight_bits) * width + (c >> weight_bits) + 1) | reinterpret_cast<V>(outside);
      *reinterpret_cast<V*>(weights + x) = (c & weight_mask) | (r & weight_mask) << 16;
      column += lanes * xx;
      row += lanes * yx;
    }
    for (int x = move.end; x < columns; x += lanes) *reinterpret_cast<V*>(offsets + x) = outside_offset;
    offsets += columns;
    weights += columns;
  }
  for (std::size_t i = 0; i < lookahead; i += lanes) *reinterpret_cast<V*>(offsets + i) = outside_offset;
}

// interpolate_levels() of the group of pixels that begins at `first`, one output byte per pixel.
template <std::size_t bytes>
[[gnu::always_inline]] inline void interpolate(const GatherTable& table, std::size_t first,
                                               std::uint8_t* out) {
  using V = Vector<std::uint32_t, bytes>;
  using Bytes = Vector<std::uint8_t, bytes>;
  constexpr std::size_t lanes = bytes / sizeof(std::uint32_t);
  V levels{};
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const std::size_t at = first + static_cast<std::size_t>(k) * lanes;
    V quad;
    if constexpr (bytes == min_bytes) {
      const std::int32_t* const offsets = table.offsets + at;
      quad =
          V{table.quad(offsets[0]), table.quad(offsets[1]), table.quad(offsets[2]), table.quad(offsets[3])};
    } else {
      quad = *reinterpret_cast<const V*>(table.quads + at);
    }
    const V weight = *reinterpret_cast<const V*>(table.weights + at);
    const V right = weight & 0xffff, down = weight >> 16;
    const V p00 = quad & 255, p10 = quad >> 8 & 255, p01 = quad >> 16 & 255, p11 = quad >> 24;
    const V above = (p00 << weight_bits) + (p01 - p00) * right;
    const V below = (p10 << weight_bits) + (p11 - p10) * right;
    const V sum = (above << weight_bits) + (below - above) * down + (1 << (2 * weight_bits - 1));
    constexpr int from = 2 * weight_bits;  // the position of the level in the sum, which has no higher bits
    levels |= (k < 3 ? sum >> (from - 8 * k) : sum << (24 - from)) & (255u << 8 * k);
  }
  // Word i holds the levels of pixels i, lanes + i, …: reorder bytes within each 16 bytes, then the words.
  const auto mixed = reinterpret_cast<Bytes>(levels);
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    const Bytes within = __builtin_shufflevector(mixed, mixed, (i / 16 * 16 + i % 4 * 4 + i / 4 % 4)...);
    levels = reinterpret_cast<V>(within);
  }
  (std::make_integer_sequence<int, bytes>());
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    constexpr int groups = lanes / 4;
    *reinterpret_cast<V*>(out) = __builtin_shufflevector(levels, levels, (i % groups * 4 + i / groups)...);
  }
  (std::make_integer_sequence<int, lanes>());
}

// Computes the levels of all pixels. Quads are gathered by scalar loads and stores a few groups before they
// are needed: a vector load stalls if it reads words that were stored just before (no store forwarding).
template <std::size_t bytes>
[[gnu::always_inline]] inline void interpolate_all(const GatherTable& table, std::size_t count,
                                                   std::uint8_t* out) {
  constexpr std::size_t group = bytes;
  const auto gather = [&](std::size_t first, std::size_t size) __attribute__((always_inline)) {
    if constexpr (bytes > min_bytes)
#pragma GCC unroll 16
      for (std::size_t i = 0; i < size; ++i) table.quads[first + i] = table.quad(table.offsets[first + i]);
  };
  gather(0, lookahead);
  std::size_t i = 0;
  for (; i + group <= count; i += group) {
    gather(i + lookahead, group);
    interpolate<bytes>(table, i, out + i);
  }
  // The remainder uses the shortest vectors.
  for (; i + min_bytes <= count; i += min_bytes) interpolate<min_bytes>(table, i, out + i);
  if (i == count) return;
  std::uint8_t rest[min_bytes];
  interpolate<min_bytes>(table, i, rest);
  std::memcpy(out + i, rest, count - i);
}

// noisy_level() of `count` levels with its shifts combined: level + (bits · factor + start) / 2²³, where
// factor is 2 · noise and start is 2²² − 65535 · noise. A separate function with plain arguments, because in
// a lambda a written byte could alias the captures, which prevents vectorization.
typedef std::uint16_t Half __attribute__((may_alias));  // 16 random bits
template <std::uint32_t count>
[[gnu::always_inline]] inline void add_halves(const Half* __restrict halves, std::uint16_t factor,
                                              std::uint32_t start, std::uint8_t* __restrict levels) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t level =
        levels[i] + (static_cast<std::int32_t>(std::uint32_t{halves[i]} * factor + start) >> 23);
    levels[i] = static_cast<std::uint8_t>(std::clamp(level, 0, 255));
  }
}

// Computes first all moves, then all offsets, then all loads, so that no stage waits for a value just stored.
// Not inlined, so that noise and resampling do not compete for registers.
[[gnu::noinline]] void resample_small(const FusedPassParams& params, AugmentScratch& scratch) {
  const ImageSize size = params.size;
  const int pixels = size.height * size.width;
  const auto count = static_cast<std::size_t>(pixels);
  const std::uint8_t* const source = moved_source(params, scratch);
  scratch.pairs.resize(count + 3);  // two before the first, and one that is loaded with the last
  std::uint16_t* const pairs = scratch.pairs.data() + 2;
  pairs[-2] = pairs[-1] = 0;
  const int last = pixels - size.width;
  pair_rows(source, source + size.width, last, pairs);
  pair_rows(source + last, source + last, size.width, pairs + last);
  const int first = params.pass.resample + 1;
  scratch.moves.resize(static_cast<std::size_t>(size.height));
  RowMove* const moves = scratch.moves.data();
  for (int y = 0; y < size.height; ++y)
    moves[y] = row_move<false>(params.steps + first, params.pass.moves_end - first, size, y);
  const GatherTable table = make_gather_table(pairs - 1, count, scratch.gather);
  const SourceMap map = params.steps[params.pass.resample].map;
  std::uint8_t* const out = params.out;
  with_simd([=]<std::size_t bytes>() __attribute__((always_inline)) {
    const GatherTable local = table;  // a local copy cannot be aliased by the stores
    compute_offsets<bytes>(map, moves, size, local);
    interpolate_all<bytes>(local, count, out);
  });
}

[[gnu::noinline]] void add_noise_simd(std::int32_t noise, const RandomKey& key, std::uint8_t* out,
                                      std::int64_t count, AugmentScratch& scratch) {
  constexpr std::int64_t chunk = 4096;  // bytes whose random bits stay in the L1 cache
  scratch.bits.resize(chunk / 2);
  std::uint32_t* const words = scratch.bits.data();
  static_assert(std::endian::native == std::endian::little && chunk / 8 % philox_group == 0);
  const auto factor = static_cast<std::uint16_t>(2 * noise);
  const std::uint32_t start = (1u << 22) - 65535u * static_cast<std::uint32_t>(noise);
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const auto present = static_cast<std::uint32_t>(std::min(chunk, count - begin));
    const auto first = static_cast<std::uint32_t>(1 + begin / 8);
    philox_blocks(key.counter(first), key.seed, (present + 7) / 8, words);
    std::uint8_t* const levels = out + begin;
    with_simd([=]<std::size_t>() __attribute__((always_inline)) {
      const auto* const halves = reinterpret_cast<const Half*>(words);
      std::uint32_t i = 0;
      for (; i + 64 <= present; i += 64) add_halves<64>(halves + i, factor, start, levels + i);
      for (; i + 16 <= present; i += 16) add_halves<16>(halves + i, factor, start, levels + i);
      if (i == present) return;
      std::uint8_t rest[16] = {};
      std::memcpy(rest, levels + i, present - i);
      add_halves<16>(halves + i, factor, start, rest);
      std::memcpy(levels + i, rest, present - i);
    });
  }
}

}  // namespace

void run_fused_pass_simd(const FusedPassParams& params, AugmentScratch& scratch) {
  const FusedPass& pass = params.pass;
  const ImageSize& size = params.size;
  if (pass.resamples() && is_linear(params.recipe->steps[pass.resample]) && size.channels == 1 &&
      std::max(size.height, size.width) <= max_small_side)
    resample_small(params, scratch);
  else
    move_and_resample(params, scratch);
  for (int i = pass.moves_end; i < pass.end; ++i)
    add_noise_simd(params.steps[i].noise, key_of(params, i), params.out, size.bytes(), scratch);
}

}  // namespace tandem::detail
