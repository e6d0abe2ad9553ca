#include "tandem/ops/conv/depthwise_bf16.h"

#include <algorithm>

#include "tandem/core/parallel.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/depthwise_pass.h"

namespace tandem::detail {
namespace {

// A tile is some rows of a chunk of channels: widened, computed as rows in f32 are, and rounded once.
struct DepthwiseBf16Rows {
  const DepthwisePass& pass;
  BFloat16* to;
  const BFloat16* from;
  const float* packed;
  DepthwiseEpilogue epilogue;

  void run() const {
    const std::int64_t chunks = ceil_div(pass.channels, chunk), rows = rows_per_tile(chunks),
                       tiles = ceil_div(pass.grid.y, rows);
    parallel_for(pass.images * chunks * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      const Buffer wide = make_scratch<float>(source_rows({0, rows}) * pass.source.x * chunk),
                   sums = make_scratch<float>(rows * pass.grid.x * chunk),
                   residual = make_scratch<float>(epilogue.residual ? rows * pass.grid.x * chunk : 0);
      Scratch scratch{.wide = as<float>(wide),
                      .sums = as<float>(sums),
                      .residual = epilogue.residual ? as<float>(residual) : nullptr,
                      .part = pass,
                      .taps = {}};
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t row = unit % tiles * rows, first = unit / tiles % chunks * chunk;
        compute({.image = unit / tiles / chunks,
                 .rows = {row, std::min(row + rows, pass.grid.y)},
                 .first = first,
                 .channels = std::min(chunk, pass.channels - first)},
                scratch);
      }
    });
  }

 private:
  static constexpr std::int64_t chunk = chunk_channels<float>;
  static constexpr std::int64_t max_wide_bytes = 1 << 18;

  struct Tile {
    std::int64_t image;
    IndexRange rows;  // of the grid
    std::int64_t first, channels;
  };

  // Of one thread.
  struct Scratch {
    float* wide;
    float* sums;
    float* residual;
    DepthwisePass part;  // the pass of one tile
    RowTaps taps;
  };

  // Rows of the source that rows of the grid may read, inside the image or not.
  IndexRange source_range(IndexRange rows) const {
    if (pass.taps.empty()) return {0, 0};
    const auto [low, high] = std::ranges::minmax(pass.taps, {}, [](const Tap& tap) { return tap.offset.y; });
    return {pass.step.y * rows.begin + low.offset.y, pass.step.y * (rows.end - 1) + high.offset.y + 1};
  }
  std::int64_t source_rows(IndexRange rows) const { return source_range(rows).count(); }

  // As many as fit beside the sums, but enough tiles for all threads.
  std::int64_t rows_per_tile(std::int64_t chunks) const {
    const std::int64_t row_bytes = pass.source.x * chunk * std::int64_t{sizeof(float)},
                       max_rows = (max_wide_bytes / row_bytes - source_rows({0, 1})) / pass.step.y + 1,
                       share = pass.images * chunks * pass.grid.y / (std::int64_t{2} * thread_count());
    return std::clamp<std::int64_t>(std::min(max_rows, share), 1, pass.grid.y);
  }

  void compute(const Tile& tile, Scratch& scratch) const {
    const IndexRange needed = source_range(tile.rows),
                     source{std::clamp<std::int64_t>(needed.begin, 0, pass.source.y),
                            std::clamp<std::int64_t>(needed.end, 0, pass.source.y)};
    DepthwisePass& part = scratch.part;
    part.images = 1;
    part.channels = tile.channels;
    part.source = {source.count(), pass.source.x};
    part.target = part.grid = {tile.rows.count(), pass.grid.x};
    part.first = {0, 0};
    part.target_step = {1, 1};
    for (std::size_t i = 0; i < part.taps.size(); ++i)
      part.taps[i].offset.y = pass.taps[i].offset.y + pass.step.y * tile.rows.begin - source.begin;
    const auto source_of = [&](std::int64_t i) __attribute__((always_inline)) {
      return from + ((tile.image * pass.source.y + source.begin) * pass.source.x + i) * pass.channels +
             tile.first;
    };
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < part.source.y * part.source.x; ++i)
        convert(scratch.wide + i * tile.channels, source_of(i), tile.channels);
      if (epilogue.residual)
        for_each_pixel(
            tile, [&](std::int64_t pixel, std::int64_t at) __attribute__((always_inline)) {
              convert(scratch.residual + pixel * tile.channels, epilogue.residual + at, tile.channels);
            });
    });
    compute_depthwise_rows(part, scratch.sums, scratch.wide, packed + tile.first,
                           {.bias = epilogue.bias ? epilogue.bias + tile.first : nullptr,
                            .residual = scratch.residual,
                            .activation = epilogue.activation},
                           {0, tile.rows.count()}, scratch.taps);
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for_each_pixel(
          tile, [&](std::int64_t pixel, std::int64_t at) __attribute__((always_inline)) {
            convert(to + at, scratch.sums + pixel * tile.channels, tile.channels);
          });
    });
  }

  // Calls f(pixel of the tile, its first element in the target).
  template <class F>
  [[gnu::always_inline]] void for_each_pixel(const Tile& tile, const F& f) const {
    std::int64_t pixel = 0;
    for (std::int64_t y = tile.rows.begin; y < tile.rows.end; ++y)
      for (std::int64_t x = 0; x < pass.grid.x; ++x)
        f(pixel++, pass.target_pixel(tile.image, y, x) * pass.channels + tile.first);
  }
  template <class To, class From>
  [[gnu::always_inline]] static void convert(To* __restrict values, const From* __restrict of,
                                             std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<To>(of[i]);
  }
};

}  // namespace

void depthwise_conv2d(const Conv2dPlan& plan, BFloat16* y, const BFloat16* x, const float* packed,
                      const DepthwiseEpilogue& epilogue) {
  const DepthwisePass pass = forward_pass(plan);
  DepthwiseBf16Rows{pass, y, x, packed, epilogue}.run();
}

void depthwise_input_gradient(const Conv2dPlan& plan, BFloat16* dx, const BFloat16* dy, const float* packed) {
  for (const DepthwisePass& pass : input_gradient_passes(plan))
    DepthwiseBf16Rows{pass, dx, dy, packed, {}}.run();
}

}  // namespace tandem::detail
