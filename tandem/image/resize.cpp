#include "tandem/image/resize.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/simd.h"

namespace tandem {
namespace {

void fill_table(ResizeTable& table, ResizeFilter filter, int64_t in, int64_t out) {
  if (table.filter == filter && table.in == in && table.out == out) return;
  const int64_t stride = most_resize_taps(filter, in, out);
  table.in = 0;  // until it is whole
  table.first.resize(size_t(out));
  table.count.resize(size_t(out));
  table.weights.resize(size_t(out * stride));
  table.raw.resize(size_t(stride));
  for (int64_t i = 0; i < out; ++i) {
    const ResizeTaps taps = resize_taps(filter, in, out, i);
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) sum += table.raw[size_t(k)] = taps.weight(k);
    int32_t* weights = &table.weights[size_t(i * stride)];
    int64_t count = 0;  // up to the last weight that is not 0
    for (int64_t k = 0; k < taps.count; ++k)
      if ((weights[k] = fixed_resize_weight(table.raw[size_t(k)] / sum)) != 0) count = k + 1;
    table.first[size_t(i)] = taps.first;
    table.count[size_t(i)] = count;
  }
  table.filter = filter, table.in = in, table.out = out, table.stride = stride;
}

// The exact sums of `lanes` neighbouring values, one a byte of a vector, in four vectors of 32 bits. Values
// are widened and narrowed by shuffles within each 16 bytes (little-endian): the compilers have an
// instruction for each of these, where converting bytes goes one by one.
template <size_t bytes>
struct Sums {
  using Ints = Vector<int32_t, bytes>;
  static constexpr int64_t lanes = bytes;
  Ints parts[4];

  [[gnu::always_inline]] Sums() {
#pragma GCC unroll 4
    for (Ints& part : parts) part = Ints{} + (1 << (resize_weight_bits - 1));
  }
};

// The elements of a and b in turn, of the first or second half of each 16 bytes. (These write to `out`,
// because vectors are passed by no ABI that is settled.)
template <int half, class V>
[[gnu::always_inline]] inline void interleave(const V& a, const V& b, V& out) {
  constexpr int count = sizeof(V) / sizeof(a[0]), group = 16 / sizeof(a[0]);
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    out = __builtin_shufflevector(
        a, b, (i / group * group + half * group / 2 + i % group / 2 + (i % 2 == 0 ? 0 : count))...);
  }
  (std::make_integer_sequence<int, count>());
}

// Every other element of a, then of b, of each 16 bytes.
template <class V>
[[gnu::always_inline]] inline void take_evens(const V& a, const V& b, V& out) {
  constexpr int count = sizeof(V) / sizeof(a[0]), group = 16 / sizeof(a[0]);
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    out = __builtin_shufflevector(
        a, b, (i / group * group + 2 * i % group + (i % group < group / 2 ? 0 : count))...);
  }
  (std::make_integer_sequence<int, count>());
}

template <size_t bytes>
[[gnu::always_inline]] inline void add(Sums<bytes>& sums, const uint8_t* at, int32_t weight) {
  using Bytes = Vector<uint8_t, bytes>;
  using Words = Vector<uint16_t, bytes>;
  const Bytes values = *reinterpret_cast<const Bytes*>(at);
  Bytes halves[2];
  interleave<0>(values, Bytes{}, halves[0]);
  interleave<1>(values, Bytes{}, halves[1]);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    Words quarters[2];
    interleave<0>(reinterpret_cast<const Words&>(halves[i]), Words{}, quarters[0]);
    interleave<1>(reinterpret_cast<const Words&>(halves[i]), Words{}, quarters[1]);
    sums.parts[2 * i] += reinterpret_cast<typename Sums<bytes>::Ints>(quarters[0]) * weight;
    sums.parts[2 * i + 1] += reinterpret_cast<typename Sums<bytes>::Ints>(quarters[1]) * weight;
  }
}

// The levels of `lanes` sums. They are clipped by their signs: comparing wide vectors is what compilers do
// one by one.
template <bool clip, size_t bytes>
[[gnu::always_inline]] inline void store(const Sums<bytes>& sums, uint8_t* to) {
  using Words = Vector<int16_t, bytes>;
  using Bytes = Vector<uint8_t, bytes>;
  Words halves[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    take_evens(reinterpret_cast<Words>(sums.parts[2 * i] >> resize_weight_bits),
               reinterpret_cast<Words>(sums.parts[2 * i + 1] >> resize_weight_bits), halves[i]);
    if constexpr (clip) {
      const Words below = 255 - (halves[i] & ~(halves[i] >> 15));
      halves[i] = 255 - (below & ~(below >> 15));
    }
  }
  Bytes levels;
  take_evens(reinterpret_cast<Bytes>(halves[0]), reinterpret_cast<Bytes>(halves[1]), levels);
  *reinterpret_cast<Bytes*>(to) = levels;
}

// An 8 x 16 block of bytes as eight vectors. Each stage rotates the seven bits of a byte's place, (vector,
// lane), to the left by one: three stages turn eight rows into sixteen columns, four turn them back.
struct Block {
  using Bytes = Vector<uint8_t, 16>;
  Bytes vectors[8];

  template <int stages>
  [[gnu::always_inline]] void turn() {
#pragma GCC unroll 4
    for (int stage = 0; stage < stages; ++stage) {
      Bytes turned[8];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Bytes a = vectors[i], b = vectors[i + 4];
        turned[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        turned[2 * i + 1] =
            __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) vectors[i] = turned[i];
    }
  }
};

// Rows y … y + lanes - 1 (the last one again where there are no more), `count` bytes each, so that the bytes
// of a column stand together.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_columns(const ImageView& in, int64_t y, int64_t count, uint8_t* out) {
  for (int64_t group = 0; group < lanes; group += 8) {
    const uint8_t* rows[8];
    for (int64_t i = 0; i < 8; ++i) rows[i] = in.row(std::min(y + group + i, in.height - 1));
    int64_t at = 0;
    for (; at + 16 <= count; at += 16) {
      Block block;
      for (int i = 0; i < 8; ++i) std::memcpy(&block.vectors[i], rows[i] + at, 16);
      block.turn<3>();
      for (int i = 0; i < 8; ++i) {
        uint8_t* to = out + (at + 2 * i) * lanes + group;
        const auto* columns = reinterpret_cast<const uint8_t*>(&block.vectors[i]);
        std::memcpy(to, columns, 8);
        std::memcpy(to + lanes, columns + 8, 8);
      }
    }
    for (; at < count; ++at)
      for (int i = 0; i < 8; ++i) out[at * lanes + group + i] = rows[i][at];
  }
}

// The reverse, to rows that begin `stride` bytes apart.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_rows(const uint8_t* in, int64_t count, uint8_t* out, int64_t stride) {
  for (int64_t group = 0; group < lanes; group += 8) {
    int64_t at = 0;
    for (; at + 16 <= count; at += 16) {
      Block block;
      for (int i = 0; i < 8; ++i) {
        const uint8_t* from = in + (at + 2 * i) * lanes + group;
        auto* columns = reinterpret_cast<uint8_t*>(&block.vectors[i]);
        std::memcpy(columns, from, 8);
        std::memcpy(columns + 8, from + lanes, 8);
      }
      block.turn<4>();
      for (int i = 0; i < 8; ++i) std::memcpy(out + (group + i) * stride + at, &block.vectors[i], 16);
    }
    for (; at < count; ++at)
      for (int i = 0; i < 8; ++i) out[(group + i) * stride + at] = in[at * lanes + group + i];
  }
}

template <bool clip, size_t bytes, int channels>
[[gnu::always_inline]] inline void narrow_columns(const ResizeTable& table, const uint8_t* in, uint8_t* out) {
  constexpr int64_t lanes = Sums<bytes>::lanes;
  for (int64_t x = 0; x < table.out; ++x) {
    const int32_t* weights = &table.weights[size_t(x * table.stride)];
    const uint8_t* from = in + table.first[size_t(x)] * channels * lanes;
    Sums<bytes> sums[channels];
    for (int64_t k = table.count[size_t(x)]; k > 0; --k, ++weights)
#pragma GCC unroll 3
      for (int c = 0; c < channels; ++c, from += lanes) add(sums[c], from, *weights);
#pragma GCC unroll 3
    for (int c = 0; c < channels; ++c, out += lanes) store<clip>(sums[c], out);
  }
}

// `row` bytes of one output row out of the narrowed rows its taps read. These may be read up to a whole
// number of lanes.
template <bool clip, size_t bytes>
[[gnu::always_inline]] inline void mix_rows(const int32_t* weights, const std::vector<const uint8_t*>& rows,
                                            int64_t row, uint8_t* out) {
  constexpr int64_t lanes = Sums<bytes>::lanes;
  constexpr int together = 4;
  int64_t at = 0;
  for (; at + together * lanes <= row; at += together * lanes) {
    Sums<bytes> sums[together];
    for (size_t k = 0; k < rows.size(); ++k)
#pragma GCC unroll 4
      for (int i = 0; i < together; ++i) add(sums[i], rows[k] + at + i * lanes, weights[k]);
#pragma GCC unroll 4
    for (int i = 0; i < together; ++i) store<clip>(sums[i], out + at + i * lanes);
  }
  for (; at < row; at += lanes) {
    Sums<bytes> sums;
    for (size_t k = 0; k < rows.size(); ++k) add(sums, rows[k] + at, weights[k]);
    uint8_t levels[lanes];
    store<clip>(sums, levels);
    std::memcpy(out + at, levels, size_t(std::min(lanes, row - at)));
  }
}

// Input rows are narrowed `lanes` at a time, when an output row first needs them, into a ring of blocks of
// rows that holds as many as one output row can read.
template <bool clip, size_t bytes, int channels>
[[gnu::always_inline]] inline void resize_with(const ImageView& in, uint8_t* out, ResizeScratch& scratch) {
  constexpr int64_t lanes = Sums<bytes>::lanes;
  const ResizeTable &columns = scratch.columns, &rows = scratch.rows;
  const int64_t row = columns.out * channels, stride = (row + lanes - 1) / lanes * lanes;
  const int64_t blocks = std::min((rows.stride + lanes - 2) / lanes + 1, (in.height + lanes - 1) / lanes);
  scratch.turned.resize(size_t((in.width + columns.out) * channels * lanes));
  scratch.narrowed.resize(size_t(blocks * lanes * stride));
  uint8_t *wide = scratch.turned.data(), *narrow = wide + in.width * channels * lanes;
  int64_t narrowed = 0;  // blocks
  for (int64_t y = 0; y < rows.out; ++y, out += row) {
    const int64_t first = rows.first[size_t(y)], count = rows.count[size_t(y)];
    for (; narrowed * lanes < first + count; ++narrowed) {
      to_columns<lanes>(in, narrowed * lanes, in.width * channels, wide);
      narrow_columns<clip, bytes, channels>(columns, wide, narrow);
      to_rows<lanes>(narrow, row, &scratch.narrowed[size_t(narrowed % blocks * lanes * stride)], stride);
    }
    scratch.taps.clear();
    for (int64_t i = first; i < first + count; ++i)
      scratch.taps.push_back(&scratch.narrowed[size_t((i / lanes % blocks * lanes + i % lanes) * stride)]);
    mix_rows<clip, bytes>(&rows.weights[size_t(y * rows.stride)], scratch.taps, row, out);
  }
}

}  // namespace

void resize(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
            ResizeScratch& scratch) {
  check(in.height > 0 && in.width > 0 && height > 0 && width > 0,
        "[resize] expected sides of at least 1, got {}x{} to {}x{}", in.width, in.height, width, height);
  check(in.channels == 1 || in.channels == 3, "[resize] expected 1 or 3 channels, got {}", in.channels);
  fill_table(scratch.columns, filter, in.width, width);
  fill_table(scratch.rows, filter, in.height, height);
  // Weights that are never negative and sum to 1 need no clipping, until there are so many that their
  // rounding adds up.
  constexpr int64_t many = 1 << 13;
  const bool clip =
      filter != ResizeFilter::bilinear || std::max(scratch.columns.stride, scratch.rows.stride) > many;
  with_simd([&]<size_t widest>() __attribute__((always_inline)) {
    constexpr size_t bytes = std::min<size_t>(widest, 32);  // 64 rows at once are more than small images have
    if (in.channels == 1)
      resize_with<true, bytes, 1>(in, out, scratch);
    else if (clip)
      resize_with<true, bytes, 3>(in, out, scratch);
    else
      resize_with<false, bytes, 3>(in, out, scratch);
  });
}

Image resize(const ImageView& in, int64_t height, int64_t width, ResizeFilter filter) {
  Image out = make_image(height, width, in.channels);
  ResizeScratch scratch;
  resize(in, height, width, out.pixels.data(), filter, scratch);
  return out;
}

}  // namespace tandem
