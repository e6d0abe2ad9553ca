#include "tandem/augment/fast_pass.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tandem/core/simd.h"

namespace tandem {
namespace {

// {above, below} for each pixel. Vectors may overlap: the last one ends with the last pixel.
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

// What the rotation reads, and where. A pixel and its neighbours right, below and below right are two pairs
// of levels side by side, so that interpolation needs one load: its quad. Pair p + 1 is pixel p's; pairs −1
// and 0 are 0, and place −1 stands for all that is outside. What stands for a neighbour beyond the border
// does not matter, its weight is 0.
struct Reads {
  const std::uint16_t* pairs;
  std::int32_t* places;    // of each output pixel's pair
  std::uint32_t* weights;  // to the right, and down in the upper half
  std::uint32_t* quads;

  std::uint32_t quad(std::int32_t place) const {
    std::uint32_t word;
    std::memcpy(&word, pairs + place, sizeof(word));
    return word;
  }
};

constexpr std::size_t least_bytes = 16, most_bytes = 64;  // of a vector, and pixels of a group
constexpr std::size_t ahead = 2 * most_bytes;  // pixels whose quads are gathered before they are needed

// The arrays are aligned, and half a page apart but for whole pages: a load whose address is that of a recent
// store but for whole pages has to wait for it.
Reads reads_of(const std::uint16_t* pairs, std::size_t count, std::vector<std::uint32_t>& words) {
  constexpr std::size_t page = 1024, line = 16;
  const std::size_t stride = (count + ahead + most_bytes + page - 1) / page * page + page / 2;
  words.resize(3 * stride + line);
  std::uint32_t* const first = words.data() + (0 - reinterpret_cast<std::uintptr_t>(words.data())) / 4 % line;
  return {pairs, reinterpret_cast<std::int32_t*>(first), first + stride, first + 2 * stride};
}

// The places and weights of all output pixels, row by row. A row's last vector may reach into the next row,
// which is written after it.
template <std::size_t bytes>
[[gnu::always_inline]] inline void place_rows(const RotateMap& map, const RowMove* moves,
                                              const ImageSize& size, const Reads& reads) {
  using V = Vector<std::uint32_t, bytes>;
  using W = Vector<std::int32_t, bytes>;
  constexpr int lanes = bytes / sizeof(std::uint32_t);
  V lane{};
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) lane[i] = static_cast<std::uint32_t>(i);
  // All modulo 2³², far from half of it: the highest bit is the sign.
  const auto word = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const std::uint32_t xx = word(map.xx), xy = word(map.xy), x0 = word(map.x0);
  const std::uint32_t yx = word(map.yx), yy = word(map.yy), y0 = word(map.y0);
  const std::uint32_t width = word(size.width), weight_mask = (1 << weight_bits) - 1;
  const std::uint32_t most_column = (width - 1) << map.fraction;
  const std::uint32_t most_row = word(size.height - 1) << map.fraction;
  const std::uint32_t shift = word(map.fraction - weight_bits);
  const int columns = size.width;
  const V nowhere = V{} - std::min(width, 1u);  // −1 in disguise, lest loops become calls of memset
  const V lane_xx = lane * xx + x0, lane_yx = lane * yx + y0;
  std::int32_t* places = reads.places;
  std::uint32_t* weights = reads.weights;
  for (const RowMove* const end = moves + size.height; moves != end; ++moves) {
    const RowMove move = *moves;
    const std::uint32_t start = word(move.begin + move.offset), y = word(move.row);
    V column = lane_xx + (start * xx + y * xy);
    V row = lane_yx + (start * yx + y * yy);
    *reinterpret_cast<V*>(places) = nowhere;
    for (int x = lanes; x < move.begin; x += lanes) *reinterpret_cast<V*>(places + x) = nowhere;
    for (int x = move.begin; x < move.end; x += lanes) {
      // Comparing wide vectors is what compilers do one by one; the signs of differences tell the same.
      const auto outside =
          reinterpret_cast<W>(column | (most_column - column) | row | (most_row - row)) >> 31;
      const V c = column >> shift, r = row >> shift;
      *reinterpret_cast<V*>(places + x) =
          ((r >> weight_bits) * width + (c >> weight_bits) + 1) | reinterpret_cast<V>(outside);
      *reinterpret_cast<V*>(weights + x) = (c & weight_mask) | (r & weight_mask) << 16;
      column += lanes * xx;
      row += lanes * yx;
    }
    for (int x = move.end; x < columns; x += lanes) *reinterpret_cast<V*>(places + x) = nowhere;
    places += columns;
    weights += columns;
  }
  for (std::size_t i = 0; i < ahead; i += lanes) *reinterpret_cast<V*>(places + i) = nowhere;
}

// between_levels() of the group of pixels from `first` on, a byte a pixel in a vector.
template <std::size_t bytes>
[[gnu::always_inline]] inline void interpolate(const Reads& reads, std::size_t first, std::uint8_t* out) {
  using V = Vector<std::uint32_t, bytes>;
  using Bytes = Vector<std::uint8_t, bytes>;
  constexpr std::size_t lanes = bytes / sizeof(std::uint32_t);
  V levels{};
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const std::size_t at = first + static_cast<std::size_t>(k) * lanes;
    V quad;
    if constexpr (bytes == least_bytes) {
      const std::int32_t* const places = reads.places + at;
      quad = V{reads.quad(places[0]), reads.quad(places[1]), reads.quad(places[2]), reads.quad(places[3])};
    } else {
      quad = *reinterpret_cast<const V*>(reads.quads + at);
    }
    const V weight = *reinterpret_cast<const V*>(reads.weights + at);
    const V right = weight & 0xffff, down = weight >> 16;
    const V p00 = quad & 255, p10 = quad >> 8 & 255, p01 = quad >> 16 & 255, p11 = quad >> 24;
    const V above = (p00 << weight_bits) + (p01 - p00) * right;
    const V below = (p10 << weight_bits) + (p11 - p10) * right;
    const V sum = (above << weight_bits) + (below - above) * down + (1 << (2 * weight_bits - 1));
    constexpr int from = 2 * weight_bits;  // the level's bits in the sum, which has no higher ones
    levels |= (k < 3 ? sum >> (from - 8 * k) : sum << (24 - from)) & (255u << 8 * k);
  }
  // Word i holds the levels of pixels i, lanes + i, …: first put in order within each 16 bytes, then those.
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

// The levels of all pixels. Quads are gathered by plain loads and stores, a few groups ahead: what has just
// been stored in words cannot be loaded as a vector without waiting.
template <std::size_t bytes>
[[gnu::always_inline]] inline void read_levels(const Reads& reads, std::size_t count, std::uint8_t* out) {
  constexpr std::size_t group = bytes;
  const auto gather = [&](std::size_t first, std::size_t size) __attribute__((always_inline)) {
    if constexpr (bytes > least_bytes)
#pragma GCC unroll 16
      for (std::size_t i = 0; i < size; ++i) reads.quads[first + i] = reads.quad(reads.places[first + i]);
  };
  gather(0, ahead);
  std::size_t i = 0;
  for (; i + group <= count; i += group) {
    gather(i + ahead, group);
    interpolate<bytes>(reads, i, out + i);
  }
  // What is left goes by the shortest vectors.
  for (; i + least_bytes <= count; i += least_bytes) interpolate<least_bytes>(reads, i, out + i);
  if (i == count) return;
  std::uint8_t rest[least_bytes];
  interpolate<least_bytes>(reads, i, rest);
  std::memcpy(out + i, rest, count - i);
}

// noisy_level() of `count` levels with its shifts drawn together: level + (bits · factor + start) / 2²³,
// where factor is 2 · noise and start 2²² − 65535 · noise. A function of its own with plain arguments: a byte
// that is written could change whatever a lambda has captured, and no compiler would vectorise that.
typedef std::uint16_t Half __attribute__((may_alias));
template <std::uint32_t count>
[[gnu::always_inline]] inline void add_halves(const Half* __restrict halves, std::uint16_t factor,
                                              std::uint32_t start, std::uint8_t* __restrict levels) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t level =
        levels[i] + (static_cast<std::int32_t>(std::uint32_t{halves[i]} * factor + start) >> 23);
    levels[i] = static_cast<std::uint8_t>(std::clamp(level, 0, 255));
  }
}

// First all moves, then all places, then all loads: what has just been computed need not be waited for. Not
// inlined, so that noise and rotation do not share their registers.
[[gnu::noinline]] void rotate_small(const PassWork& work, AugmentScratch& scratch) {
  const ImageSize size = work.size;
  const int pixels = size.height * size.width;
  const auto count = static_cast<std::size_t>(pixels);
  const std::uint8_t* const source = moved_source(work, scratch);
  scratch.pairs.resize(count + 3);  // two before, and one that is loaded with the last
  std::uint16_t* const pairs = scratch.pairs.data() + 2;
  pairs[-2] = pairs[-1] = 0;
  const int last = pixels - size.width;
  pair_rows(source, source + size.width, last, pairs);
  pair_rows(source + last, source + last, size.width, pairs + last);
  const int first = work.pass.rotation + 1;
  scratch.moves.resize(static_cast<std::size_t>(size.height));
  RowMove* const moves = scratch.moves.data();
  for (int y = 0; y < size.height; ++y)
    moves[y] = row_move(work.steps + first, work.pass.moves_end - first, size, y);
  const Reads reads = reads_of(pairs - 1, count, scratch.reads);
  const RotateMap map = work.steps[work.pass.rotation].map;
  std::uint8_t* const out = work.out;
  with_simd([=]<std::size_t bytes>() __attribute__((always_inline)) {
    // Copies that no store can change.
    const Reads to = reads;
    place_rows<bytes>(map, moves, size, to);
    read_levels<bytes>(to, count, out);
  });
}

[[gnu::noinline]] void add_noise_fast(std::int32_t noise, const DrawKey& key, std::uint8_t* out,
                                      std::int64_t count, AugmentScratch& scratch) {
  constexpr std::int64_t piece = 4096;  // bytes whose bits stay in the first cache
  scratch.bits.resize(piece / 2);
  std::uint32_t* const words = scratch.bits.data();
  static_assert(std::endian::native == std::endian::little && piece / 8 % philox_group == 0);
  const auto factor = static_cast<std::uint16_t>(2 * noise);
  const std::uint32_t start = (1u << 22) - 65535u * static_cast<std::uint32_t>(noise);
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    const auto present = static_cast<std::uint32_t>(std::min(piece, count - begin));
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
