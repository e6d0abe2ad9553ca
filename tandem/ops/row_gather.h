// The left factor of a convolution on the CPU: for every pixel of a result a row with the pixels its taps
// see, zeros where a tap lies outside the image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tandem/ops/product_tile.h"
#include "tandem/ops/window.h"

namespace tandem {

// Where a tap looks, from the pixel (step · row's pixel), and which of the kernel's places it is.
struct Tap {
  YX offset;
  std::int64_t weight;
};

// NHWC images, of which `channel_count` channels are looked at; the pixels that have rows.
struct GatherSource {
  std::int64_t images;
  YX size;
  std::int64_t channels, first_channel, channel_count;
  YX rows, step;
};

// A piece of the inner size, of whole taps: `padded` elements of which the last are zeros, `offset` from the
// start.
struct GatherBlock {
  std::int64_t first_tap, last_tap, padded, offset;
  std::size_t first_run = 0, last_run = 0;
};

// Neighbouring taps that see neighbours in memory.
struct GatherRun {
  std::int64_t first_tap, taps;
  YX offset;
};

class RowGather {
 public:
  RowGather(const GatherSource& source, std::vector<Tap> taps) : source_(source), taps_(std::move(taps)) {
    const auto count = static_cast<std::int64_t>(taps_.size());
    const std::int64_t most = std::max<std::int64_t>(block_inner / source_.channel_count, 1);
    const std::int64_t blocks = std::max<std::int64_t>(pieces_of(count, most), 1);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = count * b / blocks, last = count * (b + 1) / blocks;
      const std::int64_t padded = round_up((last - first) * source_.channel_count, inner_unit);
      blocks_.push_back({first, last, padded, padded_inner_, runs_.size(), 0});
      for (std::int64_t tap = first; tap < last; ++tap) add_tap(tap, blocks_.back().first_run);
      blocks_.back().last_run = runs_.size();
      padded_inner_ += padded;
      greatest_block_ = std::max(greatest_block_, padded);
    }
  }

  const GatherSource& source() const { return source_; }
  const std::vector<Tap>& taps() const { return taps_; }
  const std::vector<GatherBlock>& blocks() const { return blocks_; }
  std::int64_t padded_inner() const { return padded_inner_; }
  std::int64_t greatest_block() const { return greatest_block_; }
  std::int64_t row_count() const { return source_.images * source_.rows.y * source_.rows.x; }

  // A block of the inner size of a group of rows from `first`, of which `count` are wanted, as [row][inner].
  template <class T>
  [[gnu::always_inline]] void group(const GatherBlock& block, std::int64_t first, std::int64_t count,
                                    const T* from, T* to) const {
    const std::int64_t inner = (block.last_tap - block.first_tap) * source_.channel_count;
    for (std::int64_t r = 0; r < row_group; ++r) {
      T* const row = to + r * block.padded;
      if (r >= count) {
        copy<T>(row, nullptr, block.padded);
        continue;
      }
      for_each_piece(
          block, block.first_tap, first + r,
          from, [&](std::int64_t at, const T* piece, std::int64_t length) __attribute__((always_inline)) {
            copy(row + at, piece, length);
          });
      for (std::int64_t i = inner; i < block.padded; ++i) row[i] = T{0};
    }
  }

  // All taps of one row, without padding between blocks, filled up with zeros to `padded` elements.
  template <class T>
  [[gnu::always_inline]] void line(std::int64_t row, const T* from, T* to, std::int64_t padded) const {
    for (const GatherBlock& block : blocks_)
      for_each_piece(
          block, 0, row,
          from, [&](std::int64_t at, const T* piece, std::int64_t length) __attribute__((always_inline)) {
            copy(to + at, piece, length);
          });
    for (std::int64_t i = static_cast<std::int64_t>(taps_.size()) * source_.channel_count; i < padded; ++i)
      to[i] = T{0};
  }

 private:
  static constexpr std::int64_t block_inner = 640;  // with it, a panel and a few rows stay in the first cache

  template <class T>
  [[gnu::always_inline]] static void copy(T* to, const T* from, std::int64_t count) {
    if (from)
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = T{0};
  }

  // Lengthens the last run, unless that began before `first_run`, or begins a new one.
  void add_tap(std::int64_t tap, std::size_t first_run) {
    const YX offset = taps_[static_cast<std::size_t>(tap)].offset;
    if (runs_.size() > first_run && source_.channel_count == source_.channels &&
        offset == YX{runs_.back().offset.y, runs_.back().offset.x + runs_.back().taps})
      ++runs_.back().taps;
    else
      runs_.push_back({tap, 1, offset});
  }

  // f(place in the row, source or null for zeros, length) for a block of a row that begins with tap `origin`.
  template <class T, class F>
  [[gnu::always_inline]] void for_each_piece(const GatherBlock& block, std::int64_t origin, std::int64_t row,
                                             const T* from, const F& f) const {
    const std::int64_t line = row / source_.rows.x, image = line / source_.rows.y;
    const std::int64_t y = line % source_.rows.y * source_.step.y, x = row % source_.rows.x * source_.step.x;
    const std::int64_t channels = source_.channel_count;
    const T* const nothing = nullptr;
    for (std::size_t r = block.first_run; r < block.last_run; ++r) {
      const GatherRun& run = runs_[r];
      const std::int64_t at = (run.first_tap - origin) * channels;
      const std::int64_t source_y = y + run.offset.y, source_x = x + run.offset.x;
      if (source_y < 0 || source_y >= source_.size.y) {
        f(at, nothing, run.taps * channels);
        continue;
      }
      const std::int64_t begin = std::clamp<std::int64_t>(-source_x, 0, run.taps);
      const std::int64_t end = std::clamp<std::int64_t>(source_.size.x - source_x, begin, run.taps);
      const std::int64_t pixel = (image * source_.size.y + source_y) * source_.size.x + source_x + begin;
      if (begin > 0) f(at, nothing, begin * channels);
      if (end > begin)
        f(at + begin * channels, from + pixel * source_.channels + source_.first_channel,
          (end - begin) * channels);
      if (end < run.taps) f(at + end * channels, nothing, (run.taps - end) * channels);
    }
  }

  GatherSource source_;
  std::vector<Tap> taps_;
  std::vector<GatherBlock> blocks_;
  std::vector<GatherRun> runs_;
  std::int64_t padded_inner_ = 0, greatest_block_ = 0;
};

}  // namespace tandem
