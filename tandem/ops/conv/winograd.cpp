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

constexpr std::int64_t channel_block = 16;  // one cache line

// Copies the taps of a block of channels and filters of the weight to [channel][tap][column].
struct ForwardTaps {
  const Conv2dPlan& plan;
  const float* weight;

  template <std::size_t bytes>
  [[gnu::always_inline]] void copy(float* taps, std::int64_t channel, std::int64_t filter,
                                   std::int64_t channels, std::int64_t filters) const {
    constexpr std::int64_t lanes = bytes / sizeof(float), columns = 2 * lanes;
    for (int tap = 0; tap < 9; ++tap) {
      const float* const from = weight + (filter * 9 + tap) * plan.channels + channel;
      if (channels == channel_block && filters == columns) {
        for (std::int64_t c = 0; c < channels; c += lanes)
          for (std::int64_t j = 0; j < columns; j += lanes)
            transpose<bytes>(taps + (c * 9 + tap) * columns + j, from + j * 9 * plan.channels + c);
      } else {
        for (std::int64_t j = 0; j < filters; ++j)
          for (std::int64_t c = 0; c < channels; ++c)
            taps[(c * 9 + tap) * columns + j] = from[j * 9 * plan.channels + c];
      }
    }
  }

 private:
  // A square of one tap: [filter][channel] to [channel][filter].
  template <std::size_t bytes>
  [[gnu::always_inline]] void transpose(float* to, const float* from) const {
    using Memory = Vector<float, bytes>;
    constexpr std::size_t lanes = bytes / sizeof(float);
    Lanes<bytes> rows[lanes];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lanes; ++i)
      rows[i] = *reinterpret_cast<const Memory*>(from + static_cast<std::int64_t>(i) * 9 * plan.channels);
    transpose_square<lanes>(rows);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lanes; ++i)
      *reinterpret_cast<Memory*>(to + static_cast<std::int64_t>(i * 9 * 2 * lanes)) = rows[i];
  }
};

// The same for the transposed convolution: its channels are the filters of the weight, and the taps are
// reversed. `plan` is that of the convolution.
struct TransposedTaps {
  const Conv2dPlan& plan;
  const float* weight;

  template <std::size_t bytes>
  [[gnu::always_inline]] void copy(float* taps, std::int64_t filter, std::int64_t channel,
                                   std::int64_t filters, std::int64_t channels) const {
    constexpr std::int64_t columns = 2 * bytes / sizeof(float);
    for (std::int64_t f = 0; f < filters; ++f)
      for (int tap = 0; tap < 9; ++tap) {
        const float* from = weight + ((filter + f) * 9 + 8 - tap) * plan.channels + channel;
        for (std::int64_t j = 0; j < channels; ++j) taps[(f * 9 + tap) * columns + j] = from[j];
      }
  }
};

// G g Gᵀ of channels [first, last) and a panel of filters of `plan`: to[element · stride + channel ·
// columns].
template <std::size_t bytes, class Taps>
[[gnu::always_inline]] inline void transform_filters(const Conv2dPlan& plan, const Taps& source,
                                                     std::int64_t panel, std::int64_t first,
                                                     std::int64_t last, float* to, std::int64_t stride) {
  using V = Lanes<bytes>;
  using Memory = Vector<float, bytes>;
  constexpr std::int64_t lanes = bytes / sizeof(float), columns = 2 * lanes;
  alignas(64) float taps[channel_block * 9 * columns];
  const std::int64_t filter = panel * columns, filters = std::min(columns, plan.filters - filter);
  for (; first < last; first += channel_block) {
    const std::int64_t channels = std::min(channel_block, plan.channels - first);
    if (channels < channel_block || filters < columns) std::memset(taps, 0, sizeof taps);
    source.template copy<bytes>(taps, first, filter, channels, filters);
    for (std::int64_t c = 0; c < std::min(channel_block, last - first); ++c, to += columns)
      for (std::int64_t v = 0; v < columns; v += lanes) {
        V g[9], half[18], u[tile_elements];
        for (int tap = 0; tap < 9; ++tap)
          g[tap] = *reinterpret_cast<const Memory*>(taps + (c * 9 + tap) * columns + v);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) filter_transform(half + j, 3, g + j, 3);
#pragma GCC unroll 6
        for (int i = 0; i < input_tile; ++i) filter_transform(u + i * input_tile, 1, half + i * 3, 1);
        for (int element = 0; element < tile_elements; ++element)
          *reinterpret_cast<Memory*>(to + v + element * stride) = u[element];
      }
  }
}

constexpr std::int64_t transformed_channels = 64;  // at a time

template <class Taps>
void transform_weight(const Conv2dPlan& plan, float* transformed, const Taps& source) {
  const WeightLayout layout(plan);
  const std::int64_t blocks = ceil_div(layout.inner, transformed_channels);
  parallel_for(layout.panels * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t panel = unit / blocks, first = unit % blocks * transformed_channels;
        transform_filters<bytes>(
            plan, source, panel, first, std::min(first + transformed_channels, layout.inner),
            transformed + (panel * layout.inner + first) * layout.columns, layout.matrix_stride);
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

  // With few tiles and many channels a transformed weight is larger than everything else, and is used only
  // once: it would go to memory and back. Instead, each thread transforms the part it needs next in its
  // cache, and all threads share the transformed tiles.
  bool has_few_tiles() const {
    return plan.filters >= 4 * tiles.count && layout.panels * 2 >= thread_count();
  }

  template <class Taps>
  void run_transforming(const Taps& source) const {
    const int threads = thread_count();
    const std::int64_t groups = ceil_div(tiles.count, row_group);
    FewTiles work{.rows = groups * row_group,
                  .row_parts = std::min<std::int64_t>(groups, ceil_div(threads, layout.panels))};
    work.part_rows = ceil_div(groups, work.row_parts) * row_group;
    work.input_stride = work.rows * layout.inner + matrix_padding;
    work.weight_stride = transformed_channels * layout.columns + matrix_padding;
    work.sum_stride = work.part_rows * layout.columns + matrix_padding;
    const Buffer inputs = make_scratch<float>(tile_elements * work.input_stride);
    const std::int64_t member_floats = tile_elements * (work.weight_stride + work.sum_stride);
    const Buffer scratch = make_scratch<float>(threads * member_floats);
    run_team(threads, [&](const TeamMember& me) {
      with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
        for (std::int64_t group = me.begin(groups); group < me.end(groups); ++group)
          transform_inputs<bytes>(group * row_group, tiles.count - 1,
                                  as<float>(inputs) + group * row_group * layout.inner, work.input_stride);
        me.arrive_and_wait();
        const std::int64_t units = layout.panels * work.row_parts;
        for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit)
          panel<bytes>(source, work, unit, as<float>(inputs), as<float>(scratch) + me.index * member_floats);
      });
    });
  }

  struct FewTiles {
    std::int64_t rows;       // tiles, rounded up to groups
    std::int64_t row_parts;  // threads that share a panel
    std::int64_t part_rows = 0;
    std::int64_t input_stride = 0, weight_stride = 0, sum_stride = 0;  // from one tile element to the next
  };

  template <std::size_t bytes, class Taps>
  [[gnu::always_inline]] void panel(const Taps& source, const FewTiles& work, std::int64_t unit,
                                    const float* inputs, float* scratch) const {
    using Tile = ProductTile<float, bytes>;
    const std::int64_t panel = unit / work.row_parts, first = unit % work.row_parts * work.part_rows,
                       last = std::min(first + work.part_rows, work.rows);
    float* const filters = scratch;
    float* const sums = scratch + tile_elements * work.weight_stride;
    for (std::int64_t channel = 0; channel < layout.inner; channel += transformed_channels) {
      const std::int64_t end = std::min(channel + transformed_channels, layout.inner);
      transform_filters<bytes>(plan, source, panel, channel, end, filters, work.weight_stride);
      for (int element = 0; element < tile_elements; ++element)
        for (std::int64_t row = first; row < last; row += Tile::rows) {
          float* const to = sums + element * work.sum_stride + (row - first) * Tile::columns;
          Tile tile;
          if (channel > 0) tile.load(to, Tile::columns);
          tile.add_group_part(
              inputs + element * work.input_stride + row / row_group * row_group * layout.inner,
              row % row_group, filters + element * work.weight_stride, layout.inner, channel, end);
          tile.store(to, Tile::columns);
        }
    }
    for (std::int64_t t = first; t < std::min(last, tiles.count); ++t)
      transform_outputs<bytes>(t, sums + (t - first) * Tile::columns, work.sum_stride, panel * Tile::columns,
                               Tile::columns);
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void block(std::int64_t first, std::int64_t count, std::int64_t first_panel,
                                    std::int64_t last_panel, float* inputs, float* sums) const {
    using Tile = ProductTile<float, bytes>;
    constexpr int half_rows = 4;
    const std::int64_t rows = round_up(count, row_group),
                       columns = (last_panel - first_panel) * Tile::columns;
    const std::int64_t input_stride = rows * layout.inner + matrix_padding,
                       sum_stride = rows * columns + matrix_padding;
    for (std::int64_t t = 0; t < rows; t += row_group)
      transform_inputs<bytes>(first + t, first + count - 1, inputs + t * layout.inner, input_stride);
    for (int element = 0; element < tile_elements; ++element)
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel)
        for (std::int64_t row = 0; row < count; row += Tile::rows) {
          const auto multiply = [&]<class Rows>() __attribute__((always_inline)) {
            Rows tile;
            tile.add_group(
                inputs + element * input_stride + row / row_group * row_group * layout.inner, row % row_group,
                weight + element * layout.matrix_stride + panel * layout.inner * Tile::columns, layout.inner);
            tile.store(sums + element * sum_stride + row * columns + (panel - first_panel) * Tile::columns,
                       columns);
          };
          if (count - row <= half_rows)  // one image of 7×7 has four tiles
            multiply.template operator()<ProductTile<float, bytes, 2, half_rows>>();
          else
            multiply.template operator()<Tile>();
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
            transpose_square<4>(block);
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
  transform_weight(plan, transformed, ForwardTaps{plan, weight});
}

void winograd_conv2d(const Conv2dPlan& plan, float* y, const float* x, const float* transformed,
                     const RowEpilogue<float>& epilogue) {
  Convolution{plan, WeightLayout(plan), Tiles(plan), y, x, transformed, epilogue}.run();
}

namespace {

template <class Taps>
void transform_and_convolve(const Conv2dPlan& plan, float* y, const float* x, const Taps& taps,
                            const RowEpilogue<float>& epilogue) {
  Convolution convolution{plan, WeightLayout(plan), Tiles(plan), y, x, nullptr, epilogue};
  if (convolution.has_few_tiles()) return convolution.run_transforming(taps);
  const Buffer transformed = make_scratch<float>(winograd_weight_size(plan));
  transform_weight(plan, as<float>(transformed), taps);
  convolution.weight = as<float>(transformed);
  convolution.run();
}

}  // namespace

void winograd_conv2d_once(const Conv2dPlan& plan, float* y, const float* x, const float* weight,
                          const RowEpilogue<float>& epilogue) {
  transform_and_convolve(plan, y, x, ForwardTaps{plan, weight}, epilogue);
}

void winograd_input_gradient(const Conv2dPlan& plan, float* dx, const float* dy, const float* weight) {
  transform_and_convolve(transposed(plan), dx, dy, TransposedTaps{plan, weight}, {});
}

}  // namespace tandem::detail
