#include "tandem/ops/conv/winograd.h"

#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/team.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/winograd_tiles.h"
#include "tandem/ops/conv/work_split.h"

namespace tandem::detail {

using namespace winograd;

namespace {

// The layout of the transformed weight: [tile element][panel of filters][channel][column], channels padded to
// whole vectors.
struct WeightLayout {
  std::int64_t columns;
  std::int64_t panels;
  std::int64_t inner;
  std::int64_t matrix_stride;  // from one tile element to the next

  explicit WeightLayout(const Conv2dPlan& plan)
      : columns(native_panel_columns<float>()),
        panels(ceil_div(plan.filters, columns)),
        inner(round_up(plan.channels, columns / 2)),
        matrix_stride(panels * inner * columns + matrix_padding) {}
};

// The convolution that computes dx from dy: filters and channels swap roles, filters are rotated by 180°.
Conv2dPlan transposed(const Conv2dPlan& plan) {
  Conv2dPlan back = plan;
  std::swap(back.channels, back.filters);
  std::swap(back.in, back.out);
  back.window.padding = {2 - plan.window.padding.y, 2 - plan.window.padding.x};
  return back;
}

// G g Gᵀ for the filters of `plan`. fill(to, channel, filter, channels, filters) copies the taps of a block
// of channels and filters to [channel][tap][column].
template <class Fill>
void transform_weight(const Conv2dPlan& plan, float* transformed, const Fill& fill) {
  const WeightLayout layout(plan);
  constexpr std::int64_t channel_block = 16;  // one cache line
  const std::int64_t blocks = ceil_div(layout.inner, channel_block);
  parallel_for(layout.panels * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      using V = Lanes<bytes>;
      using Memory = Vector<float, bytes>;
      constexpr std::int64_t lanes = bytes / sizeof(float), columns = 2 * lanes;
      alignas(64) float taps[channel_block * 9 * columns] = {};
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t panel = unit / blocks, first = unit % blocks * channel_block,
                           filter = panel * columns;
        const std::int64_t channels = std::min(channel_block, plan.channels - first),
                           filters = std::min(columns, plan.filters - filter);
        if (channels < channel_block || filters < columns) std::memset(taps, 0, sizeof taps);
        fill(taps, first, filter, channels, filters);
        for (std::int64_t c = 0; c < std::min(channel_block, layout.inner - first); ++c)
          for (std::int64_t v = 0; v < columns; v += lanes) {
            V g[9], half[18], u[tile_elements];
            for (int tap = 0; tap < 9; ++tap)
              g[tap] = *reinterpret_cast<const Memory*>(taps + (c * 9 + tap) * columns + v);
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) filter_transform(half + j, 3, g + j, 3);
#pragma GCC unroll 6
            for (int i = 0; i < input_tile; ++i) filter_transform(u + i * input_tile, 1, half + i * 3, 1);
            float* const to = transformed + (panel * layout.inner + first + c) * columns + v;
            for (int element = 0; element < tile_elements; ++element)
              *reinterpret_cast<Memory*>(to + element * layout.matrix_stride) = u[element];
          }
      }
    });
  });
}

struct Convolution {
  const Conv2dPlan& plan;
  WeightLayout layout;
  Tiles tiles;
  float* y;
  const float* x;
  const float* weight;
  RowEpilogue<float> epilogue;

  // Tiles per block: few enough that their transforms fit the L2 cache, enough to reuse each panel of
  // weights.
  std::int64_t block_tiles(std::int64_t columns) const {
    const std::int64_t bytes =
        tile_elements * (layout.inner + columns) * static_cast<std::int64_t>(sizeof(float));
    return std::clamp<std::int64_t>((std::int64_t{3} << 18) / bytes / row_group * row_group, 32, 96);
  }

  void run() const {
    for_each_split(
        tiles.count, layout.panels,
        [&](std::int64_t first, std::int64_t last, std::int64_t first_panel, std::int64_t last_panel) {
          const std::int64_t columns = (last_panel - first_panel) * layout.columns;
          const std::int64_t max_tiles = std::min(block_tiles(columns), round_up(last - first, row_group));
          const Buffer inputs =
              make_scratch<float>(tile_elements * (max_tiles * layout.inner + matrix_padding));
          const Buffer sums = make_scratch<float>(tile_elements * (max_tiles * columns + matrix_padding));
          with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
            for (std::int64_t tile = first; tile < last; tile += max_tiles)
              block<bytes>(tile, std::min(max_tiles, last - tile), first_panel, last_panel, as<float>(inputs),
                           as<float>(sums));
          });
        });
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void block(std::int64_t first, std::int64_t count, std::int64_t first_panel,
                                    std::int64_t last_panel, float* inputs, float* sums) const {
    using Tile = ProductTile<float, bytes>;
    const std::int64_t rows = round_up(count, row_group),
                       columns = (last_panel - first_panel) * Tile::columns;
    const std::int64_t input_stride = rows * layout.inner + matrix_padding,
                       sum_stride = rows * columns + matrix_padding;
    for (std::int64_t t = 0; t < rows; t += row_group)
      transform_inputs<bytes>(first + t, first + count - 1, inputs + t * layout.inner, input_stride);
    for (int element = 0; element < tile_elements; ++element)
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel)
        for (std::int64_t row = 0; row < rows; row += Tile::rows) {
          Tile tile;
          tile.add_group(
              inputs + element * input_stride + row / row_group * row_group * layout.inner, row % row_group,
              weight + element * layout.matrix_stride + panel * layout.inner * Tile::columns, layout.inner);
          tile.store(sums + element * sum_stride + row * columns + (panel - first_panel) * Tile::columns,
                     columns);
        }
    for (std::int64_t t = 0; t < count; ++t)
      transform_outputs<bytes>(first + t, sums + t * columns, sum_stride, first_panel * Tile::columns,
                               columns);
  }

  // Transforms the group of input tiles from `tile` on. Tiles after `last` repeat it; their results are
  // unused.
  template <std::size_t bytes>
  [[gnu::always_inline]] void transform_inputs(std::int64_t tile, std::int64_t last, float* to,
                                               std::int64_t matrix_stride) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    constexpr int batch = is_inner_major<bytes> ? 4 : 1;
    for (int r = 0; r < row_group; r += batch) {
      PixelTile<input_tile> input[batch];
      for (int i = 0; i < batch; ++i) {
        const Tiles::Position at = tiles.position(std::min(tile + r + i, last));
        input[i].locate(x, plan.in, plan.channels, at.image, at.y - plan.window.padding.y,
                        at.x - plan.window.padding.x);
      }
      for (std::int64_t c = 0; c < layout.inner; c += lanes) {
        V out[batch][tile_elements];
        for (int i = 0; i < batch; ++i) transform_input<bytes>(out[i], input[i], c, plan.channels);
        if constexpr (is_inner_major<bytes>) {
          for (int element = 0; element < tile_elements; ++element) {
            V block[4] = {out[0][element], out[1][element], out[2][element], out[3][element]};
            transpose_4x4(block);
            for (int i = 0; i < 4; ++i)
              *reinterpret_cast<Memory*>(to + element * matrix_stride + (c + i) * row_group + r) = block[i];
          }
        } else {
          for (int element = 0; element < tile_elements; ++element)
            *reinterpret_cast<Memory*>(to + element * matrix_stride + r * layout.inner + c) = out[0][element];
        }
      }
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void transform_outputs(std::int64_t tile, const float* from,
                                                std::int64_t matrix_stride, std::int64_t first_filter,
                                                std::int64_t columns) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    const Tiles::Position at = tiles.position(tile);
    const std::int64_t height = std::min<std::int64_t>(output_tile, plan.out.y - at.y),
                       width = std::min<std::int64_t>(output_tile, plan.out.x - at.x);
    const std::int64_t line = plan.out.x * plan.filters;
    const std::int64_t corner = ((at.image * plan.out.y + at.y) * plan.out.x + at.x) * plan.filters;
    for (std::int64_t k = 0; k < columns; k += lanes) {
      const std::int64_t filter = first_filter + k, count = std::min(lanes, plan.filters - filter);
      if (count <= 0) break;
      V m[tile_elements], half[input_tile * output_tile], out[output_tile * output_tile];
      for (int element = 0; element < tile_elements; ++element)
        m[element] = *reinterpret_cast<const Memory*>(from + element * matrix_stride + k);
#pragma GCC unroll 6
      for (int j = 0; j < input_tile; ++j) output_transform(half + j, input_tile, m + j, input_tile);
#pragma GCC unroll 4
      for (int i = 0; i < output_tile; ++i)
        output_transform(out + i * output_tile, 1, half + i * input_tile, 1);
      for (std::int64_t i = 0; i < height; ++i)
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t to = corner + i * line + j * plan.filters + filter;
          write_lanes<bytes>(y + to, out[i * output_tile + j], count, epilogue.offset_by(filter, to));
        }
    }
  }
};

}  // namespace

bool is_winograd_applicable(const Conv2dPlan& plan) {
  const Window supported{.stride = {1, 1}, .padding = plan.window.padding, .dilation = {1, 1}};
  return plan.dtype == DType::f32 && plan.kernel == YX{3, 3} && plan.groups == 1 &&
         plan.window == supported && plan.window.padding.y <= 2 && plan.window.padding.x <= 2 &&
         plan.channels >= 16 && plan.filters >= 16;
}

// Tiles may extend beyond the image: require that at least a third of the multiplications is saved.
bool is_winograd_profitable(const Conv2dPlan& plan) {
  const Tiles tiles(plan);
  return is_winograd_applicable(plan) &&
         tiles.rows * tiles.columns * tile_elements <= 6 * plan.out.y * plan.out.x;
}

std::int64_t winograd_weight_size(const Conv2dPlan& plan) {
  return tile_elements * WeightLayout(plan).matrix_stride;
}

void transform_winograd_weight(const Conv2dPlan& plan, float* transformed, const float* weight) {
  const std::int64_t columns = native_panel_columns<float>();
  transform_weight(
      plan, transformed,
      [&](float* taps, std::int64_t channel, std::int64_t filter, std::int64_t channels, std::int64_t filters)
          __attribute__((always_inline)) {
            for (std::int64_t j = 0; j < filters; ++j)
              for (int tap = 0; tap < 9; ++tap) {
                const float* from = weight + ((filter + j) * 9 + tap) * plan.channels + channel;
                for (std::int64_t c = 0; c < channels; ++c) taps[(c * 9 + tap) * columns + j] = from[c];
              }
          });
}

void winograd_conv2d(const Conv2dPlan& plan, float* y, const float* x, const float* transformed,
                     const RowEpilogue<float>& epilogue) {
  Convolution{plan, WeightLayout(plan), Tiles(plan), y, x, transformed, epilogue}.run();
}

void winograd_input_gradient(const Conv2dPlan& plan, float* dx, const float* dy, const float* weight) {
  const Conv2dPlan back = transposed(plan);
  const Buffer transformed = make_scratch<float>(winograd_weight_size(back));
  // The channels of dy are the filters of the weight, and the taps are reversed.
  const std::int64_t columns = native_panel_columns<float>();
  transform_weight(
      back, as<float>(transformed),
      [&](float* taps, std::int64_t filter, std::int64_t channel, std::int64_t filters, std::int64_t channels)
          __attribute__((always_inline)) {
            for (std::int64_t f = 0; f < filters; ++f)
              for (int tap = 0; tap < 9; ++tap) {
                const float* from = weight + ((filter + f) * 9 + 8 - tap) * plan.channels + channel;
                for (std::int64_t j = 0; j < channels; ++j) taps[(f * 9 + tap) * columns + j] = from[j];
              }
          });
  winograd_conv2d(back, dx, dy, as<float>(transformed), {});
}

namespace {

// dg = Gᵀ [Σ over tiles of (A dy Aᵀ) ⊙ (Bᵀ d B)] G. The team transforms a block of tiles into panels, [tile
// element][panel][tile][column] for both factors, then each member accumulates its products. The blocks
// depend only on the sizes, so the bits do not depend on the number of threads.
struct WeightGradient {
  const Conv2dPlan& plan;
  Tiles tiles;
  std::int64_t columns;
  std::int64_t channel_panels;
  std::int64_t filter_panels;
  std::int64_t block;
  float* sums;  // [panel of channels][group of filters][tile element][filter][column]
  float* inputs;
  float* gradients;

  std::int64_t filter_groups() const { return ceil_div(plan.filters, row_group); }
  float* sums_of(std::int64_t panel, std::int64_t filter, std::int64_t element) const {
    return sums + (((panel * filter_groups() + filter / row_group) * tile_elements + element) * row_group +
                   filter % row_group) *
                      columns;
  }
  std::int64_t input_stride() const { return channel_panels * columns * block + matrix_padding; }
  std::int64_t gradient_stride() const { return filter_panels * columns * block + matrix_padding; }

  template <std::size_t bytes>
  [[gnu::always_inline]] void run(const TeamMember& me, const float* dy, const float* x,
                                  float* dweight) const {
    for (std::int64_t first = 0; first < tiles.count; first += block) {
      const std::int64_t count = std::min(block, tiles.count - first);
      for (std::int64_t t = me.begin(count); t < me.end(count); ++t) transform<bytes>(first + t, t, dy, x);
      me.arrive_and_wait();
      multiply<bytes>(me, count, first > 0);
      me.arrive_and_wait();
    }
    write<bytes>(me, dweight);
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
    using Tile = ProductTile<float, bytes>;
    const std::int64_t filters = filter_groups() * row_group, units = tile_elements * channel_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t element = unit / channel_panels, panel = unit % channel_panels;
      for (std::int64_t filter = 0; filter < filters; filter += Tile::rows) {
        float* const at = sums_of(panel, filter, element);
        Tile tile;
        if (add) tile.load(at, columns);
        tile.add_columns(
            gradients + element * gradient_stride() + filter / columns * block * columns + filter % columns,
            columns, inputs + element * input_stride() + panel * block * columns, count);
        tile.store(at, columns);
      }
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void write(const TeamMember& me, float* dweight) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    const std::int64_t units = plan.filters * channel_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t panel = unit / plan.filters, filter = unit % plan.filters;
      for (std::int64_t c = panel * columns; c < std::min((panel + 1) * columns, plan.channels); c += lanes) {
        V u[tile_elements], half[3 * input_tile], g[9];
        const float* const from = sums_of(panel, filter, 0) + c % columns;
        for (int element = 0; element < tile_elements; ++element)
          u[element] = *reinterpret_cast<const Memory*>(from + element * row_group * columns);
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
  gradient.block = std::min(tiles.count, std::clamp<std::int64_t>((1 << 19) / tile_size, 64, 128));
  const Buffer sums = make_scratch<float>(gradient.channel_panels * gradient.filter_groups() * tile_elements *
                                          row_group * columns);
  const Buffer inputs = make_scratch<float>(tile_elements * gradient.input_stride());
  const Buffer gradients = make_scratch<float>(tile_elements * gradient.gradient_stride());
  gradient.sums = as<float>(sums);
  gradient.inputs = as<float>(inputs);
  gradient.gradients = as<float>(gradients);
  run_team(thread_count(), [&](const TeamMember& me) {
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { gradient.run<bytes>(me, dy, x, dweight); });
  });
}

}  // namespace tandem::detail
