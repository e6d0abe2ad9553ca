#include "tandem/image/resize.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/simd.h"
#include "tandem/image/resize_kernel.h"
#include "tandem/image/resize_sums.h"

namespace tandem::detail {
namespace {

void fill_table(ResizeTable& table, ResizeFilter filter, int64_t in, int64_t out, bool mirrored) {
  if (table.filter == filter && table.mirrored == mirrored && table.in == in && table.out == out) return;
  constexpr int group = resize_tap_group;
  const int64_t stride = (max_resize_taps(filter, in, out) + group - 1) / group * group;
  table.in = 0;  // invalid until it is complete
  table.first.resize(size_t(out));
  table.count.resize(size_t(out));
  table.weights.resize(size_t(out * stride));
  table.raw.resize(size_t(stride));
  for (int64_t i = 0; i < out; ++i) {
    const ResizeTaps taps = resize_taps(filter, in, out, mirrored ? out - 1 - i : i);
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) sum += table.raw[size_t(k)] = taps.weight(k);
    int32_t* weights = &table.weights[size_t(i * stride)];
    int64_t count = 0;  // complete groups, up to the last weight that is not 0
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

// Sixteen rows of 16 bytes; every further 16 bytes of the vectors hold sixteen more rows.
template <size_t bytes>
struct Block {
  using Row = Vector<uint8_t, 16>;
  Vector<uint8_t, bytes> vectors[16];

  // Transposes each 16 x 16 block of bytes: every stage rotates the eight bits of a byte's position, (vector,
  // byte), by one.
  [[gnu::always_inline]] void transpose() {
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; ++stage) {
      Vector<uint8_t, bytes> next[16];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        interleave<0, uint8_t, bytes>(vectors[i], vectors[i + 8], next[2 * i]);
        interleave<1, uint8_t, bytes>(vectors[i], vectors[i + 8], next[2 * i + 1]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) vectors[i] = next[i];
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

// Calls f(offset) for chunks of 16 that cover `count`; the last one may overlap the one before. Returns false
// if `count` is below 16.
template <class F>
[[gnu::always_inline]] inline bool for_each_chunk(int64_t count, const F& f) {
  if (count < 16) return false;
  for (int64_t at = 0; at < count; at += 16) f(std::min(at, count - 16));
  return true;
}

// Transposes `lanes` rows of `count` bytes, starting at row y, so that the bytes of a column are contiguous.
// Beyond the last row of the image, that row is repeated.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_columns(const ImageView& in, int64_t y, int64_t count, uint8_t* out) {
  const uint8_t* rows[lanes];
  for (int64_t i = 0; i < lanes; ++i) rows[i] = in.row(std::min(y + i, in.height - 1));
  const bool done = for_each_chunk(
      count, [&](int64_t at) __attribute__((always_inline)) {
        Block<lanes> block;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) block.load_row(i, rows, at);
        block.transpose();
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) std::memcpy(out + (at + i) * lanes, &block.vectors[i], lanes);
      });
  if (done) return;
  for (int64_t at = 0; at < count; ++at)
    for (int64_t i = 0; i < lanes; ++i) out[at * lanes + i] = rows[i][at];
}

// The reverse, into rows that are `stride` bytes apart.
template <int64_t lanes>
[[gnu::always_inline]] inline void to_rows(const uint8_t* in, int64_t count, uint8_t* out, int64_t stride) {
  uint8_t* rows[lanes];
  for (int64_t i = 0; i < lanes; ++i) rows[i] = out + i * stride;
  const bool done = for_each_chunk(
      count, [&](int64_t at) __attribute__((always_inline)) {
        Block<lanes> block;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) std::memcpy(&block.vectors[i], in + (at + i) * lanes, lanes);
        block.transpose();
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) block.store_row(i, rows, at);
      });
  if (done) return;
  for (int64_t at = 0; at < count; ++at)
    for (int64_t i = 0; i < lanes; ++i) rows[i][at] = in[at * lanes + i];
}

// Computes `vectors` adjacent vectors of weighted sums; tap(k) is the address of the k-th of `count` taps.
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

// All channels of a pixel at once if the registers can hold their sums, otherwise one at a time.
constexpr int vectors_at_once(int channels, int max_vectors) {
  return channels <= max_vectors ? channels : 1;
}

template <class Sums, int channels>
[[gnu::always_inline]] inline void resample_columns(const ResizeTable& table, const uint8_t* in,
                                                    uint8_t* out) {
  constexpr int64_t lanes = Sums::lanes, pixel = channels * lanes;
  constexpr int vectors = vectors_at_once(channels, Sums::max_vectors);
  for (int64_t x = 0; x < table.out; ++x)
    for (int c = 0; c < channels; c += vectors, out += vectors * lanes) {
      const uint8_t* from = in + table.first[size_t(x)] * pixel + c * lanes;
      sum_taps<Sums, vectors>(
          &table.weights[size_t(x * table.stride)],
          table.count[size_t(x)], [&](int64_t k) __attribute__((always_inline)) { return from + k * pixel; },
          out);
    }
}

// Computes `row` bytes of one output row from the resampled rows of its taps. Those are padded: reads may
// extend to a multiple of the lanes.
template <class Sums>
[[gnu::always_inline]] inline void resample_row(const int32_t* weights,
                                                const std::vector<const uint8_t*>& rows, int64_t row,
                                                uint8_t* out) {
  constexpr int64_t lanes = Sums::lanes, together = Sums::max_vectors * lanes;
  const auto count = int64_t(rows.size());
  int64_t at = 0;
  const auto tap = [&](int64_t k) __attribute__((always_inline)) {
    return rows[size_t(k)] + at;
  };
  for (; at + together <= row; at += together)
    sum_taps<Sums, Sums::max_vectors>(weights, count, tap, out + at);
  for (; at < row; at += lanes) {
    uint8_t levels[lanes];
    sum_taps<Sums, 1>(weights, count, tap, levels);
    std::memcpy(out + at, levels, size_t(std::min(lanes, row - at)));
  }
}

// Input rows are resampled `lanes` at a time, when an output row first needs them, into a ring of row blocks
// that holds as many rows as one output row can read. A padding tap with weight 0 may lie beyond the last
// column, where it reads the memory of the resampled columns, or beyond the last row, where it reads the last
// row again.
template <class Sums, int channels>
[[gnu::always_inline]] inline void resize_by(const ImageView& in, uint8_t* out, ResizeScratch& scratch) {
  constexpr int64_t lanes = Sums::lanes;
  const ResizeTable &columns = scratch.columns, &rows = scratch.rows;
  const int64_t row = columns.out * channels, stride = (row + lanes - 1) / lanes * lanes;
  const int64_t blocks = std::min((rows.stride + lanes - 2) / lanes + 1, (in.height + lanes - 1) / lanes);
  scratch.transposed.resize(size_t((in.width + columns.out) * channels * lanes));
  scratch.resampled.resize(size_t(blocks * lanes * stride));
  uint8_t *columns_in = scratch.transposed.data(), *columns_out = columns_in + in.width * channels * lanes;
  int64_t done = 0;  // blocks of input rows
  for (int64_t y = 0; y < rows.out; ++y, out += row) {
    const int64_t first = rows.first[size_t(y)], end = first + rows.count[size_t(y)];
    for (; done * lanes < std::min(end, in.height); ++done) {
      to_columns<lanes>(in, done * lanes, in.width * channels, columns_in);
      resample_columns<Sums, channels>(columns, columns_in, columns_out);
      to_rows<lanes>(columns_out, row, &scratch.resampled[size_t(done % blocks * lanes * stride)], stride);
    }
    scratch.taps.clear();
    for (int64_t i = first; i < end; ++i) {
      const int64_t at = std::min(i, in.height - 1);
      scratch.taps.push_back(&scratch.resampled[size_t((at / lanes % blocks * lanes + at % lanes) * stride)]);
    }
    resample_row<Sums>(&rows.weights[size_t(y * rows.stride)], scratch.taps, row, out);
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

void resize_into(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
                 ResizeScratch& scratch, bool mirrored) {
  check(in.height > 0 && in.width > 0 && height > 0 && width > 0,
        "[resize] expected sides of at least 1, got {}x{} to {}x{}", in.width, in.height, width, height);
  check(in.channels == 1 || in.channels == 3, "[resize] expected 1 or 3 channels, got {}", in.channels);
  if (in.height == height && in.width == width && !mirrored) {  // every pixel has its own weight only
    const int64_t row_bytes = width * in.channels;
    for (int64_t y = 0; y < height; ++y) std::memcpy(out + y * row_bytes, in.row(y), size_t(row_bytes));
    return;
  }
  fill_table(scratch.columns, filter, in.width, width, mirrored);
  fill_table(scratch.rows, filter, in.height, height, false);
  with_simd([&]<size_t widest>() __attribute__((always_inline)) {
    constexpr size_t bytes = std::min<size_t>(widest, 32);  // small images have fewer than 64 rows
#if defined(__x86_64__)
    if constexpr (widest == 64)
      if (has_vnni()) return resize_with<PairSums<bytes, true>>(in, out, scratch);
    resize_with<PairSums<bytes, false>>(in, out, scratch);
#else
    // Weights that are never negative and sum to 1 need no clipping, unless there are so many that their rounding
    // errors add up.
    constexpr int64_t max_taps = 1 << 13;
    if (filter != ResizeFilter::bilinear || std::max(scratch.columns.stride, scratch.rows.stride) > max_taps)
      resize_with<WideSums<bytes, true>>(in, out, scratch);
    else
      resize_with<WideSums<bytes, false>>(in, out, scratch);
#endif
  });
}

}  // namespace tandem::detail

namespace tandem {

Image resize(const ImageView& in, int64_t height, int64_t width, ResizeFilter filter) {
  Image out = make_image(height, width, in.channels);
  detail::ResizeScratch scratch;
  detail::resize_into(in, height, width, out.pixels.data(), filter, scratch);
  return out;
}

}  // namespace tandem
