#include "tandem/ops/conv/im2col_conv.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/team.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/im2col.h"
#include "tandem/ops/conv/work_split.h"
#include "tandem/ops/fused_activation_cpu.h"

namespace tandem::detail {
namespace {

// The sizes of one channel group.
struct GroupSize {
  std::int64_t channels, filters, taps;
};

GroupSize group_of(const Conv2dPlan& plan) {
  return {plan.channels / plan.groups, plan.filters / plan.groups, plan.kernel.y * plan.kernel.x};
}

Im2col forward_im2col(const Conv2dPlan& plan, std::int64_t group) {
  const GroupSize size = group_of(plan);
  RecycledVector<Tap> taps;
  for (std::int64_t ky = 0; ky < plan.kernel.y; ++ky)
    for (std::int64_t kx = 0; kx < plan.kernel.x; ++kx)
      taps.push_back({{ky * plan.window.dilation.y - plan.window.padding.y,
                       kx * plan.window.dilation.x - plan.window.padding.x},
                      ky * plan.kernel.x + kx});
  return Im2col({.images = plan.images,
                 .size = plan.in,
                 .channels = plan.channels,
                 .first_channel = group * size.channels,
                 .channel_count = size.channels,
                 .rows = plan.out,
                 .step = plan.window.stride},
                taps);
}

// Where the rows of a product are stored: at the pixels first + step · (y, x) of images of `size`.
struct Im2colTarget {
  YX size;
  YX first;
  YX step;
  std::int64_t channels;
  std::int64_t first_channel;
  std::int64_t channel_count;
};

// Packs the right factor into panels: [panel][padded inner][columns], padded with zeros. fill(to, column,
// count, tap, channel) writes one row of a panel.
template <class T, class Fill>
void pack_panels(const Im2col& im2col, std::int64_t columns, T* packed, const Fill& fill) {
  const std::int64_t width = native_panel_columns<T>(), inner = im2col.padded_inner();
  parallel_for(ceil_div(columns, width), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      T* to = packed + panel * inner * width;
      std::fill_n(to, inner * width, T{0});
      const std::int64_t column = panel * width, count = std::min(width, columns - column);
      for (const Im2colBlock& block : im2col.blocks()) {
        std::int64_t k = block.offset;
        for (std::int64_t tap = block.first_tap; tap < block.last_tap; ++tap)
          for (std::int64_t channel = 0; channel < im2col.source().channel_count; ++channel, ++k)
            fill(to + k * width, column, count, im2col.taps()[static_cast<std::size_t>(tap)].weight, channel);
      }
    }
  });
}

template <class T>
struct Im2colProduct {
  const Im2col& im2col;
  const Im2colTarget& target;
  T* to;
  const T* from;
  const T* packed;
  RowEpilogue<T> epilogue;

  // Rows gathered at a time: a block of them fits the L2 cache.
  static constexpr std::int64_t block_rows = 96;

  void run() const {
    const std::int64_t rows = im2col.row_count(), width = native_panel_columns<T>();
    const std::int64_t panels = ceil_div(target.channel_count, width);
    for_each_split(
        rows, panels,
        [&](std::int64_t first_row, std::int64_t last_row, std::int64_t first_panel,
            std::int64_t last_panel) {
          const std::int64_t max_rows = std::min(block_rows, round_up(last_row - first_row, row_group));
          const Buffer gathered = make_scratch<T>((max_rows + row_group) * im2col.max_block_size());
          const Buffer partial =
              make_scratch<T>(im2col.blocks().size() > 1 ? max_rows * (last_panel - first_panel) * width : 0);
          with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
            for (std::int64_t row = first_row; row < last_row; row += block_rows)
              block<bytes>(row, std::min(block_rows, last_row - row), first_panel, last_panel,
                           as<T>(gathered), as<T>(partial));
          });
        });
  }

  // `gathered` holds a block of rows and one more row group.
  template <std::size_t bytes>
  [[gnu::always_inline]] void block(std::int64_t first_row, std::int64_t rows, std::int64_t first_panel,
                                    std::int64_t last_panel, T* gathered, T* partial) const {
    using Tile = ProductTile<T, bytes>;
    const std::int64_t groups = ceil_div(rows, row_group);
    const std::size_t last_block = im2col.blocks().size() - 1;
    std::int64_t offsets[block_rows] = {};
    for (std::int64_t r = 0; r < rows; ++r) offsets[r] = pixel_offset(first_row + r);
    for (std::size_t b = 0; b <= last_block; ++b) {
      const Im2colBlock& part = im2col.blocks()[b];
      for (std::int64_t group = 0; group < groups; ++group) {
        T* const packed_group = gathered + group * row_group * part.padded;
        T* const group_rows =
            is_inner_major<bytes> ? gathered + groups * row_group * part.padded : packed_group;
        const std::int64_t row = group * row_group;
        im2col.gather_group(part, first_row + row, std::min(row_group, rows - row), from, group_rows);
        if constexpr (is_inner_major<bytes>) to_inner_major(packed_group, group_rows, part.padded);
      }
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel)
        for (std::int64_t row = 0; row < groups * row_group; row += Tile::rows) {
          Tile tile;
          T* const sums = partial + ((panel - first_panel) * groups * row_group + row) * Tile::columns;
          if (b > 0) tile.load(sums, Tile::columns);
          tile.add_group(gathered + row / row_group * row_group * part.padded, row % row_group,
                         packed + (panel * im2col.padded_inner() + part.offset) * Tile::columns, part.padded);
          if (b < last_block) {
            tile.store(sums, Tile::columns);
          } else {
            alignas(64) T last_sums[Tile::rows * Tile::columns];
            tile.store(last_sums, Tile::columns);
            write<bytes>(last_sums, offsets + row, std::min<std::int64_t>(Tile::rows, rows - row), panel);
          }
        }
    }
    if (!needs_argument(epilogue.activation)) return;
    const std::int64_t first = first_panel * Tile::columns,
                       last = std::min(last_panel * Tile::columns, target.channel_count);
    for (std::int64_t r = 0; r < rows; ++r)
      activate_row(epilogue.activation, to + offsets[r] + first, last - first);
  }

  // The offset of the first channel of a row's pixel in the result.
  std::int64_t pixel_offset(std::int64_t row) const {
    const YX grid = im2col.source().rows;
    const std::int64_t line = row / grid.x, x = row % grid.x, image = line / grid.y, y = line % grid.y;
    return ((image * target.size.y + target.first.y + y * target.step.y) * target.size.x + target.first.x +
            x * target.step.x) *
               target.channels +
           target.first_channel;
  }

  // The sums are in memory: were they still in registers, the call for a part of a vector would make the
  // compiler keep them on the stack, also in the loop over the inner dimension, which then takes twice as
  // long.
  template <std::size_t bytes>
  [[gnu::always_inline]] void write(const T* sums, const std::int64_t* offsets, std::int64_t rows,
                                    std::int64_t panel) const {
    using Tile = ProductTile<T, bytes>;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t v = 0; v < Tile::columns; v += Tile::lanes) {
        const std::int64_t column = panel * Tile::columns + v;
        if (column >= target.channel_count) break;
        const typename Tile::Sum part =
            *reinterpret_cast<const typename Tile::Memory*>(sums + r * Tile::columns + v);
        write_lanes<bytes>(to + offsets[r] + column, part, target.channel_count - column,
                           epilogue.offset_by(target.first_channel + column, offsets[r] + column));
      }
  }
};

}  // namespace

template <class T>
std::int64_t im2col_weight_size(const Conv2dPlan& plan) {
  return plan.groups * round_up(group_of(plan).filters, native_panel_columns<T>()) *
         forward_im2col(plan, 0).padded_inner();
}

template <class T>
void pack_im2col_weight(const Conv2dPlan& plan, T* packed, const T* weight) {
  const GroupSize size = group_of(plan);
  const std::int64_t inner = size.taps * size.channels;
  for (std::int64_t group = 0; group < plan.groups; ++group) {
    const Im2col im2col = forward_im2col(plan, group);
    const T* from = weight + group * size.filters * inner;
    pack_panels(im2col, size.filters,
                packed + group * round_up(size.filters, native_panel_columns<T>()) * im2col.padded_inner(),
                [&](T* to, std::int64_t column, std::int64_t count, std::int64_t tap, std::int64_t channel) {
                  for (std::int64_t j = 0; j < count; ++j)
                    to[j] = from[(column + j) * inner + tap * size.channels + channel];
                });
  }
}

template <class T>
void im2col_conv2d(const Conv2dPlan& plan, T* y, const T* x, const T* packed,
                   const RowEpilogue<T>& epilogue) {
  const GroupSize size = group_of(plan);
  for (std::int64_t group = 0; group < plan.groups; ++group) {
    const Im2col im2col = forward_im2col(plan, group);
    const Im2colTarget target{.size = plan.out,
                              .first = {0, 0},
                              .step = {1, 1},
                              .channels = plan.filters,
                              .first_channel = group * size.filters,
                              .channel_count = size.filters};
    Im2colProduct<T>{
        im2col,
        target,
        y,
        x,
        packed + group * round_up(size.filters, native_panel_columns<T>()) * im2col.padded_inner(),
        epilogue}
        .run();
  }
}

namespace {

// Pixels of x at the same offset from a multiple of the stride (`phase`) are under the same taps. They are
// the rows of one product, whose inner dimension runs over those taps and the filters.
template <class T>
void input_gradient_of_phase(const Conv2dPlan& plan, YX phase, std::int64_t group, T* dx, const T* dy,
                             const T* weight) {
  const GroupSize size = group_of(plan);
  const YX stride = plan.window.stride;
  const YX rows{ceil_div(plan.in.y - phase.y, stride.y), ceil_div(plan.in.x - phase.x, stride.x)};
  RecycledVector<Tap> taps;
  for (std::int64_t ky = plan.kernel.y - 1; ky >= 0; --ky)
    for (std::int64_t kx = plan.kernel.x - 1; kx >= 0; --kx) {
      const std::int64_t y = phase.y + plan.window.padding.y - ky * plan.window.dilation.y;
      const std::int64_t x = phase.x + plan.window.padding.x - kx * plan.window.dilation.x;
      if (y % stride.y == 0 && x % stride.x == 0)
        taps.push_back({{y / stride.y, x / stride.x}, ky * plan.kernel.x + kx});
    }
  const Im2col im2col({.images = plan.images,
                       .size = plan.out,
                       .channels = plan.filters,
                       .first_channel = group * size.filters,
                       .channel_count = size.filters,
                       .rows = rows,
                       .step = {1, 1}},
                      taps);
  const Buffer packed =
      make_scratch<T>(round_up(size.channels, native_panel_columns<T>()) * im2col.padded_inner());
  T* const panels = as<T>(packed);
  const T* from = weight + group * size.filters * size.taps * size.channels;
  pack_panels(im2col, size.channels, panels,
              [&](T* to, std::int64_t column, std::int64_t count, std::int64_t tap, std::int64_t filter) {
                std::memcpy(to, from + (filter * size.taps + tap) * size.channels + column,
                            static_cast<std::size_t>(count) * sizeof(T));
              });
  const Im2colTarget target{.size = plan.in,
                            .first = phase,
                            .step = stride,
                            .channels = plan.channels,
                            .first_channel = group * size.channels,
                            .channel_count = size.channels};
  Im2colProduct<T>{im2col, target, dx, dy, panels, {}}.run();
}

}  // namespace

template <class T>
void im2col_input_gradient(const Conv2dPlan& plan, T* dx, const T* dy, const T* weight) {
  for (std::int64_t group = 0; group < plan.groups; ++group)
    for (std::int64_t y = 0; y < std::min(plan.window.stride.y, plan.in.y); ++y)
      for (std::int64_t x = 0; x < std::min(plan.window.stride.x, plan.in.x); ++x)
        input_gradient_of_phase(plan, {y, x}, group, dx, dy, weight);
}

namespace {

// dweight (filters × inner) = dyᵀ · rows. The team packs a block of rows and the gradients of their pixels
// into panels, then each member accumulates its tiles. The blocks depend only on the sizes, so the bits do
// not depend on the number of threads.
template <class T>
void weight_gradient_of_group(const Conv2dPlan& plan, std::int64_t group, T* dweight, const T* dy,
                              const T* x) {
  const GroupSize size = group_of(plan);
  const Im2col im2col = forward_im2col(plan, group);
  const std::int64_t rows = im2col.row_count(), inner = size.taps * size.channels;
  const std::int64_t width = native_panel_columns<T>();
  const std::int64_t inner_panels = ceil_div(inner, width), filter_panels = ceil_div(size.filters, width);
  const std::int64_t block =
      std::min(rows, std::clamp<std::int64_t>((1 << 19) / (width * (inner_panels + filter_panels)), 64, 512));
  const Buffer sums_buffer = make_scratch<T>(filter_panels * width * inner_panels * width);
  const Buffer rows_buffer = make_scratch<T>(inner_panels * width * block);
  const Buffer gradient_buffer = make_scratch<T>(filter_panels * width * block);
  const Buffer line_buffer = make_scratch<T>(thread_count() * inner_panels * width);
  T* const sums = as<T>(sums_buffer);
  T* const row_panels = as<T>(rows_buffer);
  T* const gradient_panels = as<T>(gradient_buffer);

  const auto member = [&]<std::size_t bytes>(const TeamMember& me) __attribute__((always_inline)) {
    using Tile = ProductTile<T, bytes>;
    const std::int64_t filter_tiles = filter_panels * (width / Tile::rows);
    for (std::int64_t first = 0; first < rows; first += block) {
      const std::int64_t count = std::min(block, rows - first);
      for (std::int64_t row = me.begin(count); row < me.end(count); ++row) {
        T* const line = as<T>(line_buffer) + me.index * inner_panels * width;
        im2col.gather_row(first + row, x, line, inner_panels * width);
        for (std::int64_t panel = 0; panel < inner_panels; ++panel)
          for (std::int64_t j = 0; j < Tile::columns; ++j)
            row_panels[(panel * block + row) * Tile::columns + j] = line[panel * Tile::columns + j];
        const T* from = dy + (first + row) * plan.filters + group * size.filters;
        for (std::int64_t panel = 0; panel < filter_panels; ++panel) {
          T* to = gradient_panels + (panel * block + row) * width;
          const std::int64_t filled = std::min(width, size.filters - panel * width);
          for (std::int64_t j = 0; j < width; ++j) to[j] = j < filled ? from[panel * width + j] : T{0};
        }
      }
      me.arrive_and_wait();
      const std::int64_t tiles = inner_panels * filter_tiles;
      for (std::int64_t t = me.begin(tiles); t < me.end(tiles); ++t) {
        const std::int64_t inner_panel = t / filter_tiles, filter = t % filter_tiles * Tile::rows;
        T* const at = sums + (inner_panel * filter_panels * width + filter) * width;
        Tile tile;
        if (first > 0) tile.load(at, width);
        tile.add_columns(gradient_panels + filter / width * block * width + filter % width, width,
                         row_panels + inner_panel * block * width, count);
        tile.store(at, width);
      }
      me.arrive_and_wait();
    }
    for (std::int64_t filter = me.begin(size.filters); filter < me.end(size.filters); ++filter)
      for (std::int64_t k = 0; k < inner; k += width)
        std::memcpy(dweight + (group * size.filters + filter) * inner + k,
                    sums + (k / width * filter_panels * width + filter) * width,
                    static_cast<std::size_t>(std::min(width, inner - k)) * sizeof(T));
  };
  run_team(thread_count(), [&](const TeamMember& me) {
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { member.template operator()<bytes>(me); });
  });
}

}  // namespace

template <class T>
void im2col_weight_gradient(const Conv2dPlan& plan, T* dweight, const T* dy, const T* x) {
  for (std::int64_t group = 0; group < plan.groups; ++group)
    weight_gradient_of_group(plan, group, dweight, dy, x);
}

template std::int64_t im2col_weight_size<float>(const Conv2dPlan&);
template std::int64_t im2col_weight_size<double>(const Conv2dPlan&);
template void pack_im2col_weight<float>(const Conv2dPlan&, float*, const float*);
template void pack_im2col_weight<double>(const Conv2dPlan&, double*, const double*);
template void im2col_conv2d<float>(const Conv2dPlan&, float*, const float*, const float*,
                                   const RowEpilogue<float>&);
template void im2col_conv2d<double>(const Conv2dPlan&, double*, const double*, const double*,
                                    const RowEpilogue<double>&);
template void im2col_input_gradient<float>(const Conv2dPlan&, float*, const float*, const float*);
template void im2col_input_gradient<double>(const Conv2dPlan&, double*, const double*, const double*);
template void im2col_weight_gradient<float>(const Conv2dPlan&, float*, const float*, const float*);
template void im2col_weight_gradient<double>(const Conv2dPlan&, double*, const double*, const double*);

}  // namespace tandem::detail
