#include "tandem/image/resize.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/simd.h"
#include "tandem/image/resize_sums.h"

namespace tandem {
namespace {

void fill_table(ResizeTable& table, ResizeFilter filter, int64_t in, int64_t out, bool mirrored) {
  if (table.filter == filter && table.mirrored == mirrored && table.in == in && table.out == out) return;
  constexpr int group = resize_tap_group;
  const int64_t stride = (most_resize_taps(filter, in, out) + group - 1) / group * group;
  table.in = 0;  // until it is whole
  table.first.resize(size_t(out));
  table.count.resize(size_t(out));
  table.weights.resize(size_t(out * stride));
  table.raw.resize(size_t(stride));
  for (int64_t i = 0; i < out; ++i) {
    const ResizeTaps taps = resize_taps(filter, in, out, mirrored ? out - 1 - i : i);
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) sum += table.raw[size_t(k)] = taps.weight(k);
    int32_t* weights = &table.weights[size_t(i * stride)];
    int64_t count = 0;  // whole groups, up to the last weight that is not 0
    for (int64_t k = 0; k < taps.count; ++k)
      if ((weights[k] = fixed_resize_weight(table.raw[size_t(k)] / sum)) != 0)
        count = k / group * group + group;
    for (int64_t k = taps.count; k % group != 0; ++k) weights[k] = 0;
    for (int64_t k = 0; k < count; k += group) group_weights(weights + k);
    table.first[size_t(i)] = taps.first;
    table.count[size_t(i)] = count;
  }
  table.filter = filter, table.mirrored = mirrored, table.in = in, table.out = out, table.stride = stride;
}

// Sixteen rows of 16 bytes, and in every further 16 bytes of the vectors sixteen rows more.
template <size_t bytes>
struct Block {
  using Row = Vector<uint8_t, 16>;
  Vector<uint8_t, bytes> vectors[16];

  // Turns the rows of each into columns, or back: every stage rotates the eight bits of a byte's place,
  // (vector, byte), by one.
  [[gnu::always_inline]] void turn() {
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; ++stage) {
      Vector<uint8_t, bytes> turned[16];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        interleave<0, uint8_t, bytes>(vectors[i], vectors[i + 8], turned[2 * i]);
        interleave<1, uint8_t, bytes>(vectors[i], vectors[i + 8], turned[2 * i + 1]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) vectors[i] = turned[i];
    }
  }

  [[gnu::always_inline]] void load_row(int i, const uint8_t* const* rows, int64_t at) {
    const Row& first = *reinterpret_cast<const Row*>(rows[i] + at);
    if constexpr (bytes == 16)
      vectors[i] = first;
    else
      join(first, *reinterpret_cast<const Row*>(rows[i + 16] + at), vectors[i],
           std::make_integer_sequence<int, bytes>());
  }

  [[gnu::always_inline]] void store_row(int i, uint8_t* const* rows, int64_t at) const {
#pragma GCC unroll 2
    for (size_t part = 0; part < bytes / 16; ++part)
      std::memcpy(rows[size_t(i) + 16 * part] + at, reinterpret_cast<const Row*>(&vectors[i]) + part, 16);
  }

 private:
  template <int... i>
  [[gnu::always_inline]] static void join(const Row& a, const Row& b, Vector<uint8_t, bytes>& out,
                                          std::integer_sequence<int, i...>) {
    out = __builtin_shufflevector(a, b, i...);
  }
};

// Calls f(at) for pieces of 16 that cover `count`, the last one moved back; false where there are fewer.
template <class F>
[[gnu::always_inline]] inline bool in_pieces(int64_t count, const F& f) {
  if (count < 16) return false;
  for (int64_t at = 0; at < count; at += 16) f(std::min(at, count - 16));
  return true;
}

// `lanes` rows from y on (the last one again where there are no more), `count` bytes each, so that the bytes
// of a column stand together.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_columns(const ImageView& in, int64_t y, int64_t count, uint8_t* out) {
  const uint8_t* rows[lanes];
  for (int64_t i = 0; i < lanes; ++i) rows[i] = in.row(std::min(y + i, in.height - 1));
  const bool done = in_pieces(
      count, [&](int64_t at) __attribute__((always_inline)) {
        Block<lanes> block;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) block.load_row(i, rows, at);
        block.turn();
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) std::memcpy(out + (at + i) * lanes, &block.vectors[i], lanes);
      });
  if (done) return;
  for (int64_t at = 0; at < count; ++at)
    for (int64_t i = 0; i < lanes; ++i) out[at * lanes + i] = rows[i][at];
}

// The reverse, to rows that begin `stride` bytes apart.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_rows(const uint8_t* in, int64_t count, uint8_t* out, int64_t stride) {
  uint8_t* rows[lanes];
  for (int64_t i = 0; i < lanes; ++i) rows[i] = out + i * stride;
  const bool done = in_pieces(
      count, [&](int64_t at) __attribute__((always_inline)) {
        Block<lanes> block;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) std::memcpy(&block.vectors[i], in + (at + i) * lanes, lanes);
        block.turn();
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) block.store_row(i, rows, at);
      });
  if (done) return;
  for (int64_t at = 0; at < count; ++at)
    for (int64_t i = 0; i < lanes; ++i) rows[i][at] = in[at * lanes + i];
}

// `vectors` neighbouring vectors of weighted sums; tap(k) is where the k-th of `count` taps begins.
template <class Sums, int vectors, class Tap>
[[gnu::always_inline]] inline void sum_taps(const int32_t* weights, int64_t count, const Tap& tap,
                                            uint8_t* out) {
  Sums sums[vectors];
  for (int64_t k = 0; k < count; k += resize_tap_group)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const auto begin = [&](int j) __attribute__((always_inline)) {
        return tap(k + j) + i * Sums::lanes;
      };
      sums[i].add(begin, weights + k);
    }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) sums[i].store(out + i * Sums::lanes);
}

// All channels of a pixel, where registers hold their sums, or one after the other.
constexpr int vectors_at_once(int channels, int most) {
  return channels <= most ? channels : 1;
}

template <class Sums, int channels>
[[gnu::always_inline]] inline void narrow_columns(const ResizeTable& table, const uint8_t* in, uint8_t* out) {
  constexpr int64_t lanes = Sums::lanes, pixel = channels * lanes;
  constexpr int vectors = vectors_at_once(channels, Sums::at_once);
  for (int64_t x = 0; x < table.out; ++x)
    for (int c = 0; c < channels; c += vectors, out += vectors * lanes) {
      const uint8_t* from = in + table.first[size_t(x)] * pixel + c * lanes;
      sum_taps<Sums, vectors>(
          &table.weights[size_t(x * table.stride)],
          table.count[size_t(x)], [&](int64_t k) __attribute__((always_inline)) { return from + k * pixel; },
          out);
    }
}

// `row` bytes of one output row out of the narrowed rows its taps read. These may be read up to a whole
// number of lanes.
template <class Sums>
[[gnu::always_inline]] inline void mix_rows(const int32_t* weights, const std::vector<const uint8_t*>& rows,
                                            int64_t row, uint8_t* out) {
  constexpr int64_t lanes = Sums::lanes, together = Sums::at_once * lanes;
  const auto count = int64_t(rows.size());
  int64_t at = 0;
  const auto tap = [&](int64_t k) __attribute__((always_inline)) {
    return rows[size_t(k)] + at;
  };
  for (; at + together <= row; at += together) sum_taps<Sums, Sums::at_once>(weights, count, tap, out + at);
  for (; at < row; at += lanes) {
    uint8_t levels[lanes];
    sum_taps<Sums, 1>(weights, count, tap, levels);
    std::memcpy(out + at, levels, size_t(std::min(lanes, row - at)));
  }
}

// Input rows are narrowed `lanes` at a time, when an output row first needs them, into a ring of blocks of
// rows that holds as many as one output row can read. A tap that only fills a group may lie beyond the last
// column, in the memory of the narrowed ones, or the last row, which is taken again.
template <class Sums, int channels>
[[gnu::always_inline]] inline void resize_by(const ImageView& in, uint8_t* out, ResizeScratch& scratch) {
  constexpr int64_t lanes = Sums::lanes;
  const ResizeTable &columns = scratch.columns, &rows = scratch.rows;
  const int64_t row = columns.out * channels, stride = (row + lanes - 1) / lanes * lanes;
  const int64_t blocks = std::min((rows.stride + lanes - 2) / lanes + 1, (in.height + lanes - 1) / lanes);
  scratch.turned.resize(size_t((in.width + columns.out) * channels * lanes));
  scratch.narrowed.resize(size_t(blocks * lanes * stride));
  uint8_t *wide = scratch.turned.data(), *narrow = wide + in.width * channels * lanes;
  int64_t narrowed = 0;  // blocks
  for (int64_t y = 0; y < rows.out; ++y, out += row) {
    const int64_t first = rows.first[size_t(y)], end = first + rows.count[size_t(y)];
    for (; narrowed * lanes < std::min(end, in.height); ++narrowed) {
      to_columns<lanes>(in, narrowed * lanes, in.width * channels, wide);
      narrow_columns<Sums, channels>(columns, wide, narrow);
      to_rows<lanes>(narrow, row, &scratch.narrowed[size_t(narrowed % blocks * lanes * stride)], stride);
    }
    scratch.taps.clear();
    for (int64_t i = first; i < end; ++i) {
      const int64_t at = std::min(i, in.height - 1);
      scratch.taps.push_back(&scratch.narrowed[size_t((at / lanes % blocks * lanes + at % lanes) * stride)]);
    }
    mix_rows<Sums>(&rows.weights[size_t(y * rows.stride)], scratch.taps, row, out);
  }
}

template <class Sums>
[[gnu::always_inline]] inline void resize_with(const ImageView& in, uint8_t* out, ResizeScratch& scratch) {
  if (in.channels == 1)
    resize_by<Sums, 1>(in, out, scratch);
  else
    resize_by<Sums, 3>(in, out, scratch);
}

#if defined(__x86_64__)
bool has_vnni() {
  static const bool found = __builtin_cpu_supports("avx512vnni");
  return found;
}
#endif

}  // namespace

void resize(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
            ResizeScratch& scratch, bool mirrored) {
  check(in.height > 0 && in.width > 0 && height > 0 && width > 0,
        "[resize] expected sides of at least 1, got {}x{} to {}x{}", in.width, in.height, width, height);
  check(in.channels == 1 || in.channels == 3, "[resize] expected 1 or 3 channels, got {}", in.channels);
  fill_table(scratch.columns, filter, in.width, width, mirrored);
  fill_table(scratch.rows, filter, in.height, height, false);
  with_simd([&]<size_t widest>() __attribute__((always_inline)) {
    constexpr size_t bytes = std::min<size_t>(widest, 32);  // 64 rows at once are more than small images have
#if defined(__x86_64__)
    if constexpr (widest == 64)
      if (has_vnni()) return resize_with<PairSums<bytes, true>>(in, out, scratch);
    resize_with<PairSums<bytes, false>>(in, out, scratch);
#else
    // Weights that are never negative and sum to 1 need no clipping, until there are so many that their
    // rounding adds up.
    constexpr int64_t many = 1 << 13;
    if (filter != ResizeFilter::bilinear || std::max(scratch.columns.stride, scratch.rows.stride) > many)
      resize_with<PlainSums<bytes, true>>(in, out, scratch);
    else
      resize_with<PlainSums<bytes, false>>(in, out, scratch);
#endif
  });
}

Image resize(const ImageView& in, int64_t height, int64_t width, ResizeFilter filter) {
  Image out = make_image(height, width, in.channels);
  ResizeScratch scratch;
  resize(in, height, width, out.pixels.data(), filter, scratch);
  return out;
}

}  // namespace tandem
