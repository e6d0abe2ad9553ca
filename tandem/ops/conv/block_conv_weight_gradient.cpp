#include <algorithm>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/transpose_words.h"
#include "tandem/ops/pair_product.h"

namespace tandem::detail {
namespace {

using Octet = Vector<Word, 16>;

// Bits do not depend on the number of threads: pixels are divided into shards by their number alone.
constexpr std::int64_t shard_pixels = 8192, max_shards = 16, chunk_steps = 32;
constexpr std::int64_t step_pixels = step_elements(MatrixType::bf16);

// The images as the windows read them. A tap is a group of columns of the product that are consecutive in
// memory: the channels of one kernel element, or of a line of the kernel.
struct WindowSource {
  const Word* data;
  YX size;     // of an image
  YX padding;  // around it, which is not in memory
  YX taps;     // per window
  std::int64_t tap_columns;
  bool has_slack;  // a panel may read behind the last column
};

// Images with few channels, whose panels would be mostly empty, are copied with their padding: the channels
// of a whole line of the kernel are then consecutive.
class PaddedImages {
 public:
  explicit PaddedImages(const Conv2dPlan& plan, const Word* x) : plan_(plan), x_(x) {
    if (plan.channels >= panel_width || plan.kernel.x == 1) return;
    const YX padding = plan.window.padding;
    size_ = {plan.in.y + 2 * padding.y, plan.in.x + 2 * padding.x};
    const std::int64_t line = size_.x * plan.channels, inner_line = plan.in.x * plan.channels;
    memory_ = make_scratch<Word>(plan.images * size_.y * line + panel_width);
    Word* const copy = as<Word>(memory_);
    std::fill_n(copy + plan.images * size_.y * line, panel_width, Word{0});
    parallel_for(plan.images * size_.y, 32, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t image = i / size_.y, y = i % size_.y - padding.y;
        Word* const to = copy + i * line;
        if (y < 0 || y >= plan.in.y) {
          std::fill_n(to, line, Word{0});
          continue;
        }
        std::fill_n(to, padding.x * plan.channels, Word{0});
        std::copy_n(x + (image * plan.in.y + y) * inner_line, inner_line, to + padding.x * plan.channels);
        std::fill_n(to + padding.x * plan.channels + inner_line, padding.x * plan.channels, Word{0});
      }
    });
  }

  WindowSource source() const {
    if (!memory_.data()) return {x_, plan_.in, plan_.window.padding, plan_.kernel, plan_.channels, false};
    return {as<Word>(memory_), size_, {0, 0}, {plan_.kernel.y, 1}, plan_.kernel.x * plan_.channels, true};
  }

 private:
  const Conv2dPlan& plan_;
  const Word* x_;
  YX size_ = {0, 0};
  Buffer memory_;
};

class WeightGradient {
 public:
  WeightGradient(const Conv2dPlan& plan, MatrixIsa isa, const std::byte* dy, const std::byte* x)
      : plan_(plan),
        kernel_(block_kernel(MatrixType::bf16, isa)),
        pair_kernel_(pair_kernel(MatrixType::bf16, isa)),
        dy_(reinterpret_cast<const Word*>(dy)),
        padded_(plan, reinterpret_cast<const Word*>(x)),
        source_(padded_.source()),
        pixels_(plan.images * plan.out.y * plan.out.x),
        padded_pixels_(round_up(pixels_, step_pixels)),
        tap_panels_(ceil_div(source_.tap_columns, panel_width)),
        panels_(source_.taps.y * source_.taps.x * tap_panels_),
        pairs_(ceil_div(panels_, 2)),
        block_filters_(pair_kernel_ ? 2 * block_pairs : block_rows),
        filter_blocks_(ceil_div(plan.filters, block_filters_)),
        shards_(std::clamp<std::int64_t>(pixels_ / shard_pixels, 1, max_shards)),
        transposed_(make_scratch<Word>(filter_blocks_ * block_filters_ * padded_pixels_)),
        sums_(make_scratch<float>(shards_ * pairs_ * filter_blocks_ * block_size())),
        zeros_(static_cast<std::size_t>(round_up(source_.tap_columns, panel_width))) {}

  void run(float* dweight) const {
    transpose_gradient();
    parallel_for(shards_ * pairs_, 1, [&](std::int64_t begin, std::int64_t end) {
      const BlockKernelScope tiles(kernel_);
      while (begin < end) {
        const std::int64_t last = std::min(end, (begin / pairs_ + 1) * pairs_);
        add_shard(begin / pairs_, begin % pairs_, begin % pairs_ + last - begin);
        begin = last;
      }
    });
    write(dweight);
  }

 private:
  std::int64_t block_size() const { return block_filters_ * block_columns; }
  float* sums_of(std::int64_t shard, std::int64_t pair, std::int64_t filter_block) const {
    return as<float>(sums_) + ((shard * pairs_ + pair) * filter_blocks_ + filter_block) * block_size();
  }

  // dy (pixel, filter) → (filter, pixel), with zeros behind the last pixel; for a pair kernel (pair of
  // filters, group of four pixels, filter of the pair, pixel of the group).
  void transpose_gradient() const {
    constexpr std::int64_t tile = 256;  // pixels
    parallel_for(padded_pixels_, tile, [&](std::int64_t begin, std::int64_t end) {
      RecycledVector<Word> lines(static_cast<std::size_t>(pair_kernel_ ? 2 * tile : 0));
      for (; begin < end; begin += tile) {
        const std::int64_t padded = std::min(tile, end - begin), pixels = std::min(padded, pixels_ - begin);
        const Matrix gradient{.data = dy_ + begin * plan_.filters,
                              .stride = plan_.filters,
                              .rows = pixels,
                              .columns = plan_.filters};
        if (pair_kernel_) {
          transpose_pairs(gradient, as<Word>(transposed_) + 2 * begin, padded, lines.data());
          continue;
        }
        transpose(gradient, as<Word>(transposed_) + begin, padded_pixels_);
        for (std::int64_t f = 0; f < plan_.filters && pixels < padded; ++f)
          std::fill(as<Word>(transposed_) + f * padded_pixels_ + begin + pixels,
                    as<Word>(transposed_) + f * padded_pixels_ + begin + padded, Word{0});
      }
    });
  }

  // The filters of `gradient` as pairs. `lines` has room for `pixels` pixels of two filters.
  void transpose_pairs(const Matrix& gradient, Word* to, std::int64_t pixels, Word* lines) const {
    const std::int64_t whole = gradient.rows / 8 * 8;
    std::int64_t f = 0;
    for (; f + 8 <= plan_.filters; f += 8) {
      for (std::int64_t r = 0; r < whole; r += 8) {
        Octet square[8];
        for (std::int64_t i = 0; i < 8; ++i)
          std::memcpy(&square[i], gradient.data + (r + i) * gradient.stride + f, sizeof(Octet));
        transpose_square<8>(square);
        for (std::int64_t i = 0; i < 8; i += 2)
          make_pairs(reinterpret_cast<std::byte*>(to + (f + i) * padded_pixels_ + 2 * r),
                     reinterpret_cast<const std::byte*>(&square[i]), sizeof(Octet), sizeof(Octet));
      }
    }
    for (std::int64_t first = 0; first < plan_.filters; first += 2) {
      const std::int64_t begin = first + 2 <= f ? whole : 0;
      if (begin == pixels) continue;
      std::fill_n(lines, 2 * pixels, Word{0});
      for (std::int64_t i = 0; i < std::min<std::int64_t>(2, plan_.filters - first); ++i)
        for (std::int64_t r = begin; r < gradient.rows; ++r)
          lines[i * pixels + r] = gradient.data[r * gradient.stride + first + i];
      make_pairs(reinterpret_cast<std::byte*>(to + first * padded_pixels_ + 2 * begin),
                 reinterpret_cast<const std::byte*>(lines + begin), (pixels - begin) * 2, pixels * 2);
    }
  }

  // The window of an output pixel: where it begins in the images, which may be outside of them.
  struct Corner {
    std::int64_t offset;  // of its first pixel, in elements
    std::int64_t y, x;
  };

  void add_shard(std::int64_t shard, std::int64_t first_pair, std::int64_t last_pair) const {
    const std::int64_t steps = padded_pixels_ / step_pixels, end = steps * (shard + 1) / shards_;
    const Buffer packed = make_scratch<std::byte>(2 * chunk_steps * panel_step_bytes);
    RecycledVector<std::int64_t> offsets;
    for (std::int64_t s = 0; s < chunk_steps; ++s) offsets.push_back(s * step_bytes);
    RecycledVector<Corner> corners(static_cast<std::size_t>(chunk_steps * step_pixels));
    RecycledVector<const Word*> windows(static_cast<std::size_t>(chunk_steps * step_pixels));
    for (std::int64_t pair = first_pair; pair < last_pair; ++pair)
      std::fill_n(sums_of(shard, pair, 0), filter_blocks_ * block_size(), 0.0f);
    for (std::int64_t step = steps * shard / shards_; step < end; step += chunk_steps) {
      const std::int64_t count = std::min(chunk_steps, end - step);
      find_corners(step * step_pixels, count * step_pixels, corners.data());
      std::int64_t tap = -1;
      for (std::int64_t pair = first_pair; pair < last_pair; ++pair) {
        const std::int64_t panels = std::min<std::int64_t>(2, panels_ - 2 * pair);
        for (std::int64_t p = 0; p < panels; ++p) {
          const std::int64_t panel = 2 * pair + p;
          if (panel / tap_panels_ != tap) {
            tap = panel / tap_panels_;
            find_windows(tap, corners.data(), count * step_pixels, windows.data());
          }
          pack_windows(packed.data() + p * count * panel_step_bytes, panel, windows.data(),
                       count * step_pixels);
        }
        for (std::int64_t f = 0; f < filter_blocks_; ++f)
          add_product({.first_step = step,
                       .steps = count,
                       .filter_block = f,
                       .offsets = offsets.data(),
                       .panels = packed.data(),
                       .panel_count = static_cast<int>(panels)},
                      sums_of(shard, pair, f));
      }
    }
  }

  struct Part {
    std::int64_t first_step, steps;
    std::int64_t filter_block;
    const std::int64_t* offsets;
    const std::byte* panels;
    int panel_count;
  };
  void add_product(const Part& part, float* __restrict sums) const {
    alignas(64) float block[block_rows * block_columns];
    const std::int64_t first_filter = part.filter_block * block_filters_,
                       filters = std::min(block_filters_, plan_.filters - first_filter);
    const Word* const rows = as<Word>(transposed_) + first_filter * padded_pixels_;
    if (pair_kernel_) {
      std::int64_t pairs[block_pairs];
      for (std::int64_t i = 0; i < block_pairs; ++i) pairs[i] = i * 4 * padded_pixels_;
      pair_kernel_({.rows = reinterpret_cast<const std::byte*>(rows + 2 * part.first_step * step_pixels),
                    .pairs = pairs,
                    .offsets = part.offsets,
                    .steps = part.steps,
                    .panels = part.panels,
                    .used_tiles = static_cast<int>(ceil_div(filters, 2 * tile_pairs)),
                    .panel_count = part.panel_count,
                    .sums = block});
    } else {
      kernel_.multiply({.rows = reinterpret_cast<const std::byte*>(rows + part.first_step * step_pixels),
                        .row_stride = padded_pixels_ * static_cast<std::int64_t>(sizeof(Word)),
                        .offsets = part.offsets,
                        .steps = part.steps,
                        .panels = part.panels,
                        .row_tiles = filters > 16 ? 2 : 1,
                        .panel_count = part.panel_count,
                        .sums = block});
    }
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < filters * block_columns; ++i) sums[i] += block[i];
    });
  }

  void find_corners(std::int64_t first, std::int64_t count, Corner* corners) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t pixel = first + i, line = pixel / plan_.out.x, image = line / plan_.out.y;
      const std::int64_t y = line % plan_.out.y * plan_.window.stride.y - source_.padding.y,
                         x = pixel % plan_.out.x * plan_.window.stride.x - source_.padding.x;
      const bool outside = pixel >= pixels_;  // no window has an element there
      corners[i] = {((image * source_.size.y + y) * source_.size.x + x) * plan_.channels,
                    outside ? -plan_.kernel.y : y, x};
    }
  }

  // Where the columns of a tap begin for each pixel: zeros where it is outside of the image.
  void find_windows(std::int64_t tap, const Corner* corners, std::int64_t count, const Word** windows) const {
    const std::int64_t ky = tap / source_.taps.x, kx = tap % source_.taps.x;
    const Word* const from = source_.data + (ky * source_.size.x + kx) * plan_.channels;
    const Word* const zeros = zeros_.data();
    const auto height = static_cast<std::uint64_t>(source_.size.y),
               width = static_cast<std::uint64_t>(source_.size.x);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool inside = (static_cast<std::uint64_t>(corners[i].y + ky) < height) &
                          (static_cast<std::uint64_t>(corners[i].x + kx) < width);
      windows[i] = inside ? from + corners[i].offset : zeros;
    }
  }

  // Four pixels, or two, of eight channels: [pixel][channel] → [channel][pixel].
  [[gnu::always_inline]] static Octet zip_low(Octet a, Octet b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  [[gnu::always_inline]] static Octet zip_high(Octet a, Octet b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  [[gnu::always_inline]] static void interleave(Octet* to, const Octet (&pixels)[2]) {
    to[0] = zip_low(pixels[0], pixels[1]);
    to[1] = zip_high(pixels[0], pixels[1]);
  }
  [[gnu::always_inline]] static void interleave(Octet* to, const Octet (&pixels)[4]) {
    const Octet even[2] = {zip_low(pixels[0], pixels[2]), zip_high(pixels[0], pixels[2])},
                odd[2] = {zip_low(pixels[1], pixels[3]), zip_high(pixels[1], pixels[3])};
    to[0] = zip_low(even[0], odd[0]);
    to[1] = zip_high(even[0], odd[0]);
    to[2] = zip_low(even[1], odd[1]);
    to[3] = zip_high(even[1], odd[1]);
  }

  // One panel: 16 columns of a tap, [group of pixels][column][pixel of the group].
  void pack_windows(std::byte* packed, std::int64_t panel, const Word* const* windows,
                    std::int64_t pixels) const {
    const std::int64_t first = panel % tap_panels_ * panel_width,
                       columns = std::min(panel_width, source_.tap_columns - first);
    auto* const to = reinterpret_cast<Octet*>(packed);
    if (columns == panel_width || source_.has_slack)
      pack_columns(
          to, windows,
          pixels, [&](const Word* window) __attribute__((always_inline)) { return window + first; });
    else {
      constexpr std::int64_t group = group_elements(MatrixType::bf16);
      Word copies[group][panel_width] = {};
      std::int64_t next = 0;
      pack_columns(
          to, windows, pixels, [&](const Word* window) __attribute__((always_inline)) {
            Word* const copy = copies[next++ % group];
            std::memcpy(copy, window + first, static_cast<std::size_t>(columns) * sizeof(Word));
            return copy;
          });
    }
  }
  // `columns_of` gives 16 readable columns of a window, which stay for a group.
  template <class F>
  [[gnu::always_inline]] static void pack_columns(Octet* to, const Word* const* windows, std::int64_t pixels,
                                                  const F& columns_of) {
    constexpr std::int64_t group = group_elements(MatrixType::bf16);
    for (std::int64_t i = 0; i < pixels; i += group, to += 2 * group) {
      Octet low[group], high[group];
#pragma GCC unroll 4
      for (std::int64_t e = 0; e < group; ++e) {
        const Word* const columns = columns_of(windows[i + e]);
        std::memcpy(&low[e], columns, sizeof(Octet));
        std::memcpy(&high[e], columns + 8, sizeof(Octet));
      }
      interleave(to, low);
      interleave(to + group, high);
    }
  }

  // Adds the shards in their order.
  void write(float* dweight) const {
    const std::int64_t taps = source_.taps.y * source_.taps.x;
    parallel_for(plan_.filters, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = 0; panel < panels_; ++panel) {
        const std::int64_t column = panel % tap_panels_ * panel_width,
                           columns = std::min(panel_width, source_.tap_columns - column);
        for (std::int64_t f = begin; f < end; ++f) {
          float total[panel_width] = {};
          for (std::int64_t shard = 0; shard < shards_; ++shard) {
            const float* const sums = sums_of(shard, panel / 2, f / block_filters_) +
                                      f % block_filters_ * block_columns + panel % 2 * panel_width;
            for (std::int64_t j = 0; j < panel_width; ++j) total[j] += sums[j];
          }
          std::memcpy(dweight + (f * taps + panel / tap_panels_) * source_.tap_columns + column, total,
                      static_cast<std::size_t>(columns) * sizeof(float));
        }
      }
    });
  }

  const Conv2dPlan& plan_;
  const BlockKernel& kernel_;
  PairKernel pair_kernel_;
  const Word* dy_;
  PaddedImages padded_;
  WindowSource source_;
  std::int64_t pixels_, padded_pixels_;
  std::int64_t tap_panels_, panels_, pairs_;
  std::int64_t block_filters_, filter_blocks_, shards_;
  Buffer transposed_, sums_;
  RecycledVector<Word> zeros_;
};

}  // namespace

void block_weight_gradient(const Conv2dPlan& plan, MatrixIsa isa, float* dweight, const std::byte* dy,
                           const std::byte* x) {
  WeightGradient(plan, isa, dy, x).run(dweight);
}

}  // namespace tandem::detail
