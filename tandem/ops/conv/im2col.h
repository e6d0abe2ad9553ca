// The left factor of a convolution on the CPU: one row per output pixel, which holds the input pixels under
// its taps, and zeros for taps outside the image. Rows are gathered block by block; the whole matrix never
// exists in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/conv/window.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// One kernel element: its offset from the input pixel (step · row's pixel), and its index in the weight.
struct Tap {
  YX offset;
  std::int64_t weight;
};

// The NHWC images, the range of channels that is gathered, and the grid of pixels that have rows.
struct Im2colSource {
  std::int64_t images;
  YX size;
  std::int64_t channels;
  std::int64_t first_channel;
  std::int64_t channel_count;
  YX rows;
  YX step;
};

// A block of the inner dimension, of whole taps: `padded` elements, the last of them zeros, from `offset` on.
struct Im2colBlock {
  std::int64_t first_tap;
  std::int64_t last_tap;
  std::int64_t padded;
  std::int64_t offset;
  std::size_t first_run = 0;
  std::size_t last_run = 0;
};

// Consecutive taps whose pixels are contiguous in memory: one copy gathers them all.
struct Im2colRun {
  std::int64_t first_tap, taps;
  YX offset;
};

class Im2col {
 public:
  Im2col(const Im2colSource& source, RecycledVector<Tap> taps) : source_(source), taps_(std::move(taps)) {
    const auto count = static_cast<std::int64_t>(taps_.size());
    const std::int64_t max_taps = std::max<std::int64_t>(block_inner / source_.channel_count, 1);
    const std::int64_t blocks = std::max<std::int64_t>(ceil_div(count, max_taps), 1);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = count * b / blocks, last = count * (b + 1) / blocks;
      const std::int64_t padded = round_up((last - first) * source_.channel_count, inner_multiple);
      blocks_.push_back({first, last, padded, padded_inner_, runs_.size(), 0});
      for (std::int64_t tap = first; tap < last; ++tap) add_tap(tap, blocks_.back().first_run);
      blocks_.back().last_run = runs_.size();
      padded_inner_ += padded;
      max_block_size_ = std::max(max_block_size_, padded);
    }
  }

  const Im2colSource& source() const { return source_; }
  const RecycledVector<Tap>& taps() const { return taps_; }
  const RecycledVector<Im2colBlock>& blocks() const { return blocks_; }
  std::int64_t padded_inner() const { return padded_inner_; }
  std::int64_t max_block_size() const { return max_block_size_; }
  std::int64_t row_count() const { return source_.images * source_.rows.y * source_.rows.x; }

  // Writes one block of the inner dimension of the row group from `first` on as [row][inner]. Rows beyond
  // `count` are zeros.
  template <class T>
  [[gnu::always_inline]] void gather_group(const Im2colBlock& block, std::int64_t first, std::int64_t count,
                                           const T* from, T* to) const {
    const std::int64_t inner = (block.last_tap - block.first_tap) * source_.channel_count;
    for (std::int64_t r = 0; r < row_group; ++r) {
      T* const row = to + r * block.padded;
      if (r >= count) {
        copy<T>(row, nullptr, block.padded);
        continue;
      }
      for_each_segment(
          block, block.first_tap, first + r,
          from, [&](std::int64_t at, const T* segment, std::int64_t length) __attribute__((always_inline)) {
            copy(row + at, segment, length);
          });
      for (std::int64_t i = inner; i < block.padded; ++i) row[i] = T{0};
    }
  }

  // Writes all taps of one row, without padding between blocks, then zeros up to `padded` elements.
  template <class T>
  [[gnu::always_inline]] void gather_row(std::int64_t row, const T* from, T* to, std::int64_t padded) const {
    for (const Im2colBlock& block : blocks_)
      for_each_segment(
          block, 0, row,
          from, [&](std::int64_t at, const T* segment, std::int64_t length) __attribute__((always_inline)) {
            copy(to + at, segment, length);
          });
    for (std::int64_t i = static_cast<std::int64_t>(taps_.size()) * source_.channel_count; i < padded; ++i)
      to[i] = T{0};
  }

 private:
  static constexpr std::int64_t block_inner = 640;  // a panel and a few rows of it fit the L1 cache

  template <class T>
  [[gnu::always_inline]] static void copy(T* to, const T* from, std::int64_t count) {
    if (from)
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = T{0};
  }

  // Extends the last run if the tap continues it and it belongs to this block, else starts a new one.
  void add_tap(std::int64_t tap, std::size_t first_run) {
    const YX offset = taps_[static_cast<std::size_t>(tap)].offset;
    if (runs_.size() > first_run && source_.channel_count == source_.channels &&
        offset == YX{runs_.back().offset.y, runs_.back().offset.x + runs_.back().taps})
      ++runs_.back().taps;
    else
      runs_.push_back({tap, 1, offset});
  }

  // Calls f(offset in the row, source or null for zeros, length) for the segments of one block of a row. The
  // row starts with tap `origin`.
  template <class T, class F>
  [[gnu::always_inline]] void for_each_segment(const Im2colBlock& block, std::int64_t origin,
                                               std::int64_t row, const T* from, const F& f) const {
    const std::int64_t line = row / source_.rows.x, image = line / source_.rows.y;
    const std::int64_t y = line % source_.rows.y * source_.step.y, x = row % source_.rows.x * source_.step.x;
    const std::int64_t channels = source_.channel_count;
    const T* const zeros = nullptr;
    for (std::size_t r = block.first_run; r < block.last_run; ++r) {
      const Im2colRun& run = runs_[r];
      const std::int64_t at = (run.first_tap - origin) * channels;
      const std::int64_t source_y = y + run.offset.y, source_x = x + run.offset.x;
      if (source_y < 0 || source_y >= source_.size.y) {
        f(at, zeros, run.taps * channels);
        continue;
      }
      const std::int64_t begin = std::clamp<std::int64_t>(-source_x, 0, run.taps);
      const std::int64_t end = std::clamp<std::int64_t>(source_.size.x - source_x, begin, run.taps);
      const std::int64_t pixel = (image * source_.size.y + source_y) * source_.size.x + source_x + begin;
      if (begin > 0) f(at, zeros, begin * channels);
      if (end > begin)
        f(at + begin * channels, from + pixel * source_.channels + source_.first_channel,
          (end - begin) * channels);
      if (end < run.taps) f(at + end * channels, zeros, (run.taps - end) * channels);
    }
  }

  Im2colSource source_;
  RecycledVector<Tap> taps_;
  RecycledVector<Im2colBlock> blocks_;
  RecycledVector<Im2colRun> runs_;
  std::int64_t padded_inner_ = 0;
  std::int64_t max_block_size_ = 0;
};

}  // namespace tandem::detail
