#include <algorithm>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/team.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/winograd.h"
#include "tandem/ops/conv/winograd_tiles.h"

namespace tandem::detail {

using namespace winograd;

namespace {

// dg = Gᵀ [Σ over tiles of (A dy Aᵀ) ⊙ (Bᵀ d B)] G. The team transforms a block of tiles into panels, [tile
// element][panel][tile][column] for both factors, then each member accumulates its products. Every sum goes
// over the tiles in their order, so the bits depend on neither the threads nor the blocks.
struct WeightGradient {
  const Conv2dPlan& plan;
  Tiles tiles;
  std::int64_t columns;
  std::int64_t channel_panels;
  std::int64_t filter_panels;
  std::int64_t block;  // tiles
  float* inputs;
  float* gradients;
  bool one_block;
  float* sums;  // of pair_size() each: [panel of channels][panel of filters], or one per thread

  // The sums of a panel of channels and one of filters: [tile element][filter][column].
  std::int64_t pair_size() const { return tile_elements * columns * columns; }
  float* sums_of(std::int64_t panel, std::int64_t filter_panel) const {
    return sums + (panel * filter_panels + filter_panel) * pair_size();
  }
  std::int64_t input_stride() const { return channel_panels * columns * block + matrix_padding; }
  std::int64_t gradient_stride() const { return filter_panels * columns * block + matrix_padding; }

  template <std::size_t bytes>
  [[gnu::always_inline]] void run(const TeamMember& me, const float* dy, const float* x,
                                  float* dweight) const {
    if (one_block) return run_one_block<bytes>(me, dy, x, dweight);
    for (std::int64_t first = 0; first < tiles.count; first += block) {
      const std::int64_t count = std::min(block, tiles.count - first);
      transform_block<bytes>(me, first, count, dy, x);
      multiply<bytes>(me, count, first > 0);
      me.arrive_and_wait();
    }
    const std::int64_t units = plan.filters * channel_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t panel = unit / plan.filters, filter = unit % plan.filters;
      write<bytes>(panel, filter, sums_of(panel, filter / columns), dweight);
    }
  }

  // Sums are transformed back while they are in the cache: for many channels they are four times as large as
  // the weight, and would go to memory and back.
  template <std::size_t bytes>
  [[gnu::always_inline]] void run_one_block(const TeamMember& me, const float* dy, const float* x,
                                            float* dweight) const {
    transform_block<bytes>(me, 0, tiles.count, dy, x);
    float* const pair = sums + me.index * pair_size();
    const std::int64_t units = channel_panels * filter_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t panel = unit / filter_panels, filter_panel = unit % filter_panels;
      for (int element = 0; element < tile_elements; ++element)
        multiply_panels<bytes>(pair, element, panel, filter_panel, tiles.count, false);
      for (std::int64_t filter = filter_panel * columns;
           filter < std::min((filter_panel + 1) * columns, plan.filters); ++filter)
        write<bytes>(panel, filter, pair, dweight);
    }
  }

  // Returns when all members have transformed their tiles.
  template <std::size_t bytes>
  [[gnu::always_inline]] void transform_block(const TeamMember& me, std::int64_t first, std::int64_t count,
                                              const float* dy, const float* x) const {
    for (std::int64_t t = me.begin(count); t < me.end(count); ++t) transform<bytes>(first + t, t, dy, x);
    me.arrive_and_wait();
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void transform(std::int64_t tile, std::int64_t slot, const float* dy,
                                        const float* x) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    const Tiles::Position at = tiles.position(tile);
    PixelTile<input_tile> input;
    input.locate(x, plan.in, plan.channels, at.image, at.y - plan.window.padding.y,
                 at.x - plan.window.padding.x);
    for (std::int64_t c = 0; c < channel_panels * columns; c += lanes) {
      V out[tile_elements];
      transform_input<bytes>(out, input, c, plan.channels);
      float* const to = inputs + (c / columns * block + slot) * columns + c % columns;
      for (int element = 0; element < tile_elements; ++element)
        *reinterpret_cast<Memory*>(to + element * input_stride()) = out[element];
    }
    PixelTile<output_tile> gradient;
    gradient.locate(dy, plan.out, plan.filters, at.image, at.y, at.x);
    for (std::int64_t k = 0; k < filter_panels * columns; k += lanes) {
      V d[output_tile * output_tile], half[input_tile * output_tile], out[tile_elements];
      gradient.load<bytes>(d, k, plan.filters);
#pragma GCC unroll 4
      for (int j = 0; j < output_tile; ++j)
        output_transform_transposed(half + j, output_tile, d + j, output_tile);
#pragma GCC unroll 6
      for (int i = 0; i < input_tile; ++i)
        output_transform_transposed(out + i * input_tile, 1, half + i * output_tile, 1);
      float* const to = gradients + (k / columns * block + slot) * columns + k % columns;
      for (int element = 0; element < tile_elements; ++element)
        *reinterpret_cast<Memory*>(to + element * gradient_stride()) = out[element];
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void multiply(const TeamMember& me, std::int64_t count, bool add) const {
    const std::int64_t units = tile_elements * channel_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t element = unit / channel_panels, panel = unit % channel_panels;
      for (std::int64_t filter_panel = 0; filter_panel < filter_panels; ++filter_panel)
        multiply_panels<bytes>(sums_of(panel, filter_panel), element, panel, filter_panel, count, add);
    }
  }

  // One tile element of a pair of panels, over `count` tiles.
  template <std::size_t bytes>
  [[gnu::always_inline]] void multiply_panels(float* pair, std::int64_t element, std::int64_t panel,
                                              std::int64_t filter_panel, std::int64_t count, bool add) const {
    using Tile = ProductTile<float, bytes>;
    const float* const input = inputs + element * input_stride() + panel * block * columns;
    const float* const gradient = gradients + element * gradient_stride() + filter_panel * block * columns;
    const std::int64_t filters = std::min(columns, plan.filters - filter_panel * columns);
    for (std::int64_t row = 0; row < filters; row += Tile::rows) {
      float* const to = pair + (element * columns + row) * columns;
      Tile tile;
      if (add) tile.load(to, columns);
      tile.add_columns(gradient + row, columns, input, count);
      tile.store(to, columns);
    }
  }

  // Transforms the sums of one filter back.
  template <std::size_t bytes>
  [[gnu::always_inline]] void write(std::int64_t panel, std::int64_t filter, const float* pair,
                                    float* dweight) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    for (std::int64_t c = panel * columns; c < std::min((panel + 1) * columns, plan.channels); c += lanes) {
      V u[tile_elements], half[3 * input_tile], g[9];
      const float* const from = pair + filter % columns * columns + c % columns;
      for (int element = 0; element < tile_elements; ++element)
        u[element] = *reinterpret_cast<const Memory*>(from + element * columns * columns);
#pragma GCC unroll 6
      for (int j = 0; j < input_tile; ++j)
        filter_transform_transposed(half + j, input_tile, u + j, input_tile);
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) filter_transform_transposed(g + i * 3, 1, half + i * input_tile, 1);
      const std::int64_t count = std::min(lanes, plan.channels - c);
      for (int tap = 0; tap < 9; ++tap) {
        alignas(64) float values[lanes];
        *reinterpret_cast<Memory*>(values) = g[tap];
        std::memcpy(dweight + (filter * 9 + tap) * plan.channels + c, values,
                    static_cast<std::size_t>(count) * sizeof(float));
      }
    }
  }
};

}  // namespace

void winograd_weight_gradient(const Conv2dPlan& plan, float* dweight, const float* dy, const float* x) {
  const Tiles tiles(plan);
  const std::int64_t columns = native_panel_columns<float>();
  WeightGradient gradient{.plan = plan,
                          .tiles = tiles,
                          .columns = columns,
                          .channel_panels = ceil_div(plan.channels, columns),
                          .filter_panels = ceil_div(plan.filters, columns)};
  const std::int64_t tile_size = tile_elements * (plan.channels + plan.filters);
  const std::int64_t pairs = gradient.channel_panels * gradient.filter_panels;
  // While the sums are larger than the transformed tiles, and all threads have work.
  gradient.one_block = plan.channels * plan.filters >= 2 * tiles.count * (plan.channels + plan.filters) &&
                       pairs >= 2 * thread_count();
  gradient.block = gradient.one_block
                       ? tiles.count
                       : std::min(tiles.count, std::clamp<std::int64_t>((1 << 19) / tile_size, 64, 128));
  const Buffer inputs = make_scratch<float>(tile_elements * gradient.input_stride());
  const Buffer gradients = make_scratch<float>(tile_elements * gradient.gradient_stride());
  const Buffer sums =
      make_scratch<float>(gradient.pair_size() * (gradient.one_block ? thread_count() : pairs));
  gradient.inputs = as<float>(inputs);
  gradient.gradients = as<float>(gradients);
  gradient.sums = as<float>(sums);
  run_team(thread_count(), [&](const TeamMember& me) {
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { gradient.run<bytes>(me, dy, x, dweight); });
  });
}

}  // namespace tandem::detail
