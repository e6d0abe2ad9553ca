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
      blocks_.push_back({first, last, padded, padded_inner_});
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
          block.first_tap, block.last_tap, first + r,
          from, [&](std::int64_t at, const T* piece, std::int64_t length) __attribute__((always_inline)) {
            copy(row + at, piece, length);
          });
      for (std::int64_t i = inner; i < block.padded; ++i) row[i] = T{0};
    }
  }

  // All taps of one row, without padding between blocks, cut into pieces of `width` that go `distance` apart;
  // the last is filled up with zeros.
  template <class T>
  [[gnu::always_inline]] void row_into_panels(std::int64_t row, const T* from, T* to, std::int64_t distance,
                                              std::int64_t width) const {
    const auto count = static_cast<std::int64_t>(taps_.size());
    for_each_piece(
        0, count, row,
        from, [&](std::int64_t at, const T* piece, std::int64_t length) __attribute__((always_inline)) {
          while (length > 0) {
            const std::int64_t part = std::min(length, width - at % width);
            copy(to + at / width * distance + at % width, piece, part);
            at += part;
            length -= part;
            if (piece) piece += part;
          }
        });
    const std::int64_t inner = count * source_.channel_count;
    for (std::int64_t i = inner; i < round_up(inner, width); ++i) to[i / width * distance + i % width] = T{0};
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

  // f(place in the row, source or null for zeros, length) for taps [first, last) of a row. Neighbouring taps
  // that are neighbours in memory make one piece.
  template <class T, class F>
  [[gnu::always_inline]] void for_each_piece(std::int64_t first, std::int64_t last, std::int64_t row,
                                             const T* from, const F& f) const {
    const std::int64_t line = row / source_.rows.x, image = line / source_.rows.y;
    const std::int64_t y = line % source_.rows.y * source_.step.y, x = row % source_.rows.x * source_.step.x;
    const std::int64_t channels = source_.channel_count;
    const bool whole = channels == source_.channels;
    for (std::int64_t tap = first; tap < last;) {
      const YX offset = taps_[static_cast<std::size_t>(tap)].offset;
      std::int64_t length = 1;
      while (whole && tap + length < last &&
             taps_[static_cast<std::size_t>(tap + length)].offset == YX{offset.y, offset.x + length})
        ++length;
      const std::int64_t at = (tap - first) * channels, source_y = y + offset.y, source_x = x + offset.x;
      if (source_y < 0 || source_y >= source_.size.y) {
        f(at, static_cast<const T*>(nullptr), length * channels);
      } else {
        const std::int64_t begin = std::clamp<std::int64_t>(-source_x, 0, length);
        const std::int64_t end = std::clamp<std::int64_t>(source_.size.x - source_x, begin, length);
        const std::int64_t pixel = (image * source_.size.y + source_y) * source_.size.x + source_x + begin;
        if (begin > 0) f(at, static_cast<const T*>(nullptr), begin * channels);
        if (end > begin)
          f(at + begin * channels, from + pixel * source_.channels + source_.first_channel,
            (end - begin) * channels);
        if (end < length) f(at + end * channels, static_cast<const T*>(nullptr), (length - end) * channels);
      }
      tap += length;
    }
  }

  GatherSource source_;
  std::vector<Tap> taps_;
  std::vector<GatherBlock> blocks_;
  std::int64_t padded_inner_ = 0, greatest_block_ = 0;
};

}  // namespace tandem
