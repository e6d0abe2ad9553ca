#include <algorithm>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"

namespace tandem::detail {
namespace {

using Word = std::uint16_t;  // the bits of a bf16

// Along one axis, the kernel elements that reach the input positions with remainder `phase` modulo the
// stride: first, first + stride, … They form a convolution of dy with stride 1.
struct Phase {
  std::int64_t phase, first, count, padding, size;
};
Phase phase_of(std::int64_t phase, std::int64_t in, std::int64_t kernel, std::int64_t padding,
               std::int64_t stride) {
  const std::int64_t first = (phase + padding) % stride,
                     count = kernel > first ? ceil_div(kernel - first, stride) : 0;
  return {phase, first, count, count - 1 - (phase + padding) / stride, ceil_div(in - phase, stride)};
}
Phase vertical_phase(const Conv2dPlan& plan, std::int64_t phase) {
  return phase_of(phase, plan.in.y, plan.kernel.y, plan.window.padding.y, plan.window.stride.y);
}
Phase horizontal_phase(const Conv2dPlan& plan, std::int64_t phase) {
  return phase_of(phase, plan.in.x, plan.kernel.x, plan.window.padding.x, plan.window.stride.x);
}

// A matrix of words that is transposed: rows are `stride` words apart.
struct Matrix {
  const Word* data;
  std::int64_t stride;
  std::int64_t rows, columns;
};

// Writes columns as rows, `stride` words apart, in tiles of 8×8 words.
[[gnu::always_inline]] inline void transpose(const Matrix& from, Word* to, std::int64_t stride) {
  for (std::int64_t c = 0; c < from.columns; c += 8)
    for (std::int64_t r = 0; r < from.rows; r += 8) {
      using Row = Vector<Word, 16>;
      Row tile[8] = {};
      const std::int64_t rows = std::min<std::int64_t>(8, from.rows - r),
                         columns = std::min<std::int64_t>(8, from.columns - c);
      const Word* const source = from.data + r * from.stride + c;
      Word* const target = to + c * stride + r;
      const bool whole = rows == 8 && columns == 8;
      if (whole)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) std::memcpy(&tile[i], source + i * from.stride, 16);
      else
        for (std::int64_t i = 0; i < rows; ++i)
          std::memcpy(&tile[i], source + i * from.stride, static_cast<std::size_t>(columns) * sizeof(Word));
      transpose_square<8>(tile);
      if (whole)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) std::memcpy(target + i * stride, &tile[i], 16);
      else
        for (std::int64_t i = 0; i < columns; ++i)
          std::memcpy(target + i * stride, &tile[i], static_cast<std::size_t>(rows) * sizeof(Word));
    }
}

// (filters, kernel y, kernel x, channels) → (channels, y.count, x.count, filters), flipped.
void flip_weight(const Conv2dPlan& plan, const Phase& y, const Phase& x, Word* to, const Word* weight) {
  constexpr std::int64_t grain = 32;  // channels
  const std::int64_t taps = y.count * x.count, filter_size = plan.kernel.y * plan.kernel.x * plan.channels;
  parallel_for(plan.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t ky = y.first + (y.count - 1 - t / x.count) * plan.window.stride.y,
                         kx = x.first + (x.count - 1 - t % x.count) * plan.window.stride.x;
      transpose({.data = weight + (ky * plan.kernel.x + kx) * plan.channels + begin,
                 .stride = filter_size,
                 .rows = plan.filters,
                 .columns = end - begin},
                to + (begin * taps + t) * plan.filters, taps * plan.filters);
    }
  });
}

// Bits do not depend on the number of threads: pixels are divided into shards by their number alone.
constexpr std::int64_t shard_pixels = 8192, max_shards = 16, chunk_steps = 32;
constexpr std::int64_t step_pixels = step_elements(MatrixType::bf16);

class WeightGradient {
 public:
  WeightGradient(const Conv2dPlan& plan, MatrixIsa isa, const std::byte* dy, const std::byte* x)
      : plan_(plan),
        kernel_(block_kernel(MatrixType::bf16, isa)),
        dy_(reinterpret_cast<const Word*>(dy)),
        x_(reinterpret_cast<const Word*>(x)),
        pixels_(plan.images * plan.out.y * plan.out.x),
        padded_pixels_(round_up(pixels_, step_pixels)),
        tap_panels_(ceil_div(plan.channels, panel_width)),
        panels_(plan.kernel.y * plan.kernel.x * tap_panels_),
        pairs_(ceil_div(panels_, 2)),
        filter_blocks_(ceil_div(plan.filters, block_rows)),
        shards_(std::clamp<std::int64_t>(pixels_ / shard_pixels, 1, max_shards)),
        transposed_(make_scratch<Word>(filter_blocks_ * block_rows * padded_pixels_)),
        sums_(make_scratch<float>(shards_ * pairs_ * filter_blocks_ * block_rows * block_columns)) {}

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
  float* sums_of(std::int64_t shard, std::int64_t pair, std::int64_t filter_block) const {
    return as<float>(sums_) +
           ((shard * pairs_ + pair) * filter_blocks_ + filter_block) * block_rows * block_columns;
  }

  // dy (pixel, filter) → (filter, pixel), with zeros behind the last pixel.
  void transpose_gradient() const {
    constexpr std::int64_t tile = 256;  // pixels
    parallel_for(pixels_, tile, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += tile)
        transpose({.data = dy_ + begin * plan_.filters,
                   .stride = plan_.filters,
                   .rows = std::min(tile, end - begin),
                   .columns = plan_.filters},
                  as<Word>(transposed_) + begin, padded_pixels_);
    });
    for (std::int64_t f = 0; f < plan_.filters; ++f)
      std::fill(as<Word>(transposed_) + f * padded_pixels_ + pixels_,
                as<Word>(transposed_) + (f + 1) * padded_pixels_, Word{0});
  }

  // The window of an output pixel: where it begins in the images, which may be outside of them.
  struct Corner {
    std::int64_t offset;  // of its first pixel, in elements
    std::int64_t y, x;
  };

  void add_shard(std::int64_t shard, std::int64_t first_pair, std::int64_t last_pair) const {
    const std::int64_t steps = padded_pixels_ / step_pixels, end = steps * (shard + 1) / shards_;
    alignas(64) float block[block_rows * block_columns];
    const Buffer packed = make_scratch<std::byte>(2 * chunk_steps * panel_step_bytes);
    RecycledVector<std::int64_t> offsets;
    for (std::int64_t s = 0; s < chunk_steps; ++s) offsets.push_back(s * step_bytes);
    RecycledVector<Corner> corners(static_cast<std::size_t>(chunk_steps * step_pixels));
    for (std::int64_t pair = first_pair; pair < last_pair; ++pair)
      std::fill_n(sums_of(shard, pair, 0), filter_blocks_ * block_rows * block_columns, 0.0f);
    for (std::int64_t step = steps * shard / shards_; step < end; step += chunk_steps) {
      const std::int64_t count = std::min(chunk_steps, end - step);
      find_corners(step * step_pixels, count * step_pixels, corners.data());
      for (std::int64_t pair = first_pair; pair < last_pair; ++pair) {
        const std::int64_t panels = std::min<std::int64_t>(2, panels_ - 2 * pair);
        with_simd([&]<std::size_t>() __attribute__((always_inline)) {
          for (std::int64_t p = 0; p < panels; ++p)
            pack_windows(packed.data() + p * count * panel_step_bytes, 2 * pair + p, corners.data(), count);
        });
        for (std::int64_t f = 0; f < filter_blocks_; ++f) {
          kernel_.multiply({.rows = reinterpret_cast<const std::byte*>(
                                as<Word>(transposed_) + f * block_rows * padded_pixels_ + step * step_pixels),
                            .row_stride = padded_pixels_ * static_cast<std::int64_t>(sizeof(Word)),
                            .offsets = offsets.data(),
                            .steps = count,
                            .panels = packed.data(),
                            .row_tiles = plan_.filters - f * block_rows > 16 ? 2 : 1,
                            .panel_count = static_cast<int>(panels),
                            .sums = block});
          float* const sums = sums_of(shard, pair, f);
          for (std::int64_t i = 0; i < block_rows * block_columns; ++i) sums[i] += block[i];
        }
      }
    }
  }

  void find_corners(std::int64_t first, std::int64_t count, Corner* corners) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t pixel = first + i, line = pixel / plan_.out.x, image = line / plan_.out.y;
      const std::int64_t y = line % plan_.out.y * plan_.window.stride.y - plan_.window.padding.y,
                         x = pixel % plan_.out.x * plan_.window.stride.x - plan_.window.padding.x;
      const bool outside = pixel >= pixels_;  // no window has an element there
      corners[i] = {((image * plan_.in.y + y) * plan_.in.x + x) * plan_.channels,
                    outside ? -plan_.kernel.y : y, x};
    }
  }

  // [pixel][channel] → [channel][pixel].
  [[gnu::always_inline]] static void interleave(Word* to, const Word (&pixels)[2][panel_width]) {
    using Row = Vector<Word, 32>;
    const Row a = *reinterpret_cast<const Row*>(pixels[0]), b = *reinterpret_cast<const Row*>(pixels[1]);
    *reinterpret_cast<Row*>(to) =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *reinterpret_cast<Row*>(to + panel_width) =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  [[gnu::always_inline]] static void interleave(Word* to, const Word (&pixels)[4][panel_width]) {
    for (std::int64_t j = 0; j < panel_width; ++j)
      for (std::int64_t e = 0; e < 4; ++e) to[j * 4 + e] = pixels[e][j];
  }

  // One panel: 16 channels of one kernel element, [group of pixels][channel][pixel of the group].
  [[gnu::always_inline]] void pack_windows(std::byte* packed, std::int64_t panel, const Corner* corners,
                                           std::int64_t steps) const {
    constexpr std::int64_t group = group_elements(MatrixType::bf16);
    const std::int64_t tap = panel / tap_panels_, channel = panel % tap_panels_ * panel_width;
    const std::int64_t ky = tap / plan_.kernel.x, kx = tap % plan_.kernel.x,
                       channels = std::min(panel_width, plan_.channels - channel),
                       offset = (ky * plan_.in.x + kx) * plan_.channels + channel;
    auto* to = reinterpret_cast<Word*>(packed);
    for (std::int64_t i = 0; i < steps * step_pixels; i += group, to += group * panel_width) {
      Word pixels[group][panel_width] = {};
      for (std::int64_t e = 0; e < group; ++e) {
        const Corner& corner = corners[i + e];
        if (corner.y + ky < 0 || corner.y + ky >= plan_.in.y || corner.x + kx < 0 ||
            corner.x + kx >= plan_.in.x)
          continue;
        const Word* const from = x_ + corner.offset + offset;
        if (channels == panel_width)
          std::memcpy(pixels[e], from, sizeof(pixels[e]));
        else
          std::memcpy(pixels[e], from, static_cast<std::size_t>(channels) * sizeof(Word));
      }
      interleave(to, pixels);
    }
  }

  // Adds the shards in their order.
  void write(float* dweight) const {
    const std::int64_t taps = plan_.kernel.y * plan_.kernel.x;
    parallel_for(plan_.filters, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = 0; panel < panels_; ++panel) {
        const std::int64_t channel = panel % tap_panels_ * panel_width,
                           channels = std::min(panel_width, plan_.channels - channel);
        for (std::int64_t f = begin; f < end; ++f) {
          float total[panel_width] = {};
          for (std::int64_t shard = 0; shard < shards_; ++shard) {
            const float* const sums = sums_of(shard, panel / 2, f / block_rows) +
                                      f % block_rows * block_columns + panel % 2 * panel_width;
            for (std::int64_t j = 0; j < panel_width; ++j) total[j] += sums[j];
          }
          std::memcpy(dweight + (f * taps + panel / tap_panels_) * plan_.channels + channel, total,
                      static_cast<std::size_t>(channels) * sizeof(float));
        }
      }
    });
  }

  const Conv2dPlan& plan_;
  const BlockKernel& kernel_;
  const Word* dy_;
  const Word* x_;
  std::int64_t pixels_, padded_pixels_;
  std::int64_t tap_panels_, panels_, pairs_, filter_blocks_, shards_;
  Buffer transposed_, sums_;
};

}  // namespace

bool has_block_gradients(const Conv2dPlan& plan) {
  if (!uses_block_conv(plan) || plan.window.dilation != YX{1, 1}) return false;
  for (std::int64_t y = 0; y < std::min(plan.window.stride.y, plan.in.y); ++y)
    if (const Phase phase = vertical_phase(plan, y); phase.count > 0 && phase.padding < 0) return false;
  for (std::int64_t x = 0; x < std::min(plan.window.stride.x, plan.in.x); ++x)
    if (const Phase phase = horizontal_phase(plan, x); phase.count > 0 && phase.padding < 0) return false;
  return true;
}

void block_input_gradient(const Conv2dPlan& plan, MatrixIsa isa, std::byte* dx, const std::byte* dy,
                          const std::byte* weight) {
  const Conv2dSizes sizes = sizes_of(plan);
  // Input pixels between the windows have no gradient.
  if (plan.kernel.y < plan.window.stride.y || plan.kernel.x < plan.window.stride.x)
    std::memset(dx, 0, static_cast<std::size_t>(sizes.x) * sizeof(Word));
  const Buffer flipped = make_scratch<Word>(sizes.weight);
  for (std::int64_t py = 0; py < std::min(plan.window.stride.y, plan.in.y); ++py)
    for (std::int64_t px = 0; px < std::min(plan.window.stride.x, plan.in.x); ++px) {
      const Phase y = vertical_phase(plan, py), x = horizontal_phase(plan, px);
      if (y.count == 0 || x.count == 0) continue;
      flip_weight(plan, y, x, as<Word>(flipped), reinterpret_cast<const Word*>(weight));
      const Conv2dPlan phase{.images = plan.images,
                             .channels = plan.filters,
                             .filters = plan.channels,
                             .in = plan.out,
                             .kernel = {y.count, x.count},
                             .out = {y.size, x.size},
                             .window = {.padding = {y.padding, x.padding}},
                             .dtype = DType::bf16};
      const Buffer packed = make_scratch<std::byte>(block_conv_weight_bytes(phase, MatrixType::bf16));
      pack_block_conv_weight(phase, MatrixType::bf16, packed.data(), flipped.data());
      block_conv2d({.plan = phase,
                    .isa = isa,
                    .x = dy,
                    .packed = packed.data(),
                    .y = dx,
                    .grid = {.size = plan.in, .first = {py, px}, .step = plan.window.stride}});
    }
}

void block_weight_gradient(const Conv2dPlan& plan, MatrixIsa isa, float* dweight, const std::byte* dy,
                           const std::byte* x) {
  WeightGradient(plan, isa, dy, x).run(dweight);
}

}  // namespace tandem::detail
