#include "tandem/ops/winograd.h"

#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/core/team.h"
#include "tandem/ops/wide_copy.h"
#include "tandem/ops/winograd_tiles.h"
#include "tandem/ops/work_split.h"

namespace tandem {

using namespace winograd;

namespace {

// Transformed weight: [place][panel of filters][channel][column], channels up to whole vectors.
struct WeightForm {
  std::int64_t columns, panels, inner, place;  // elements from one place to the next

  explicit WeightForm(const Conv2dPlan& plan)
      : columns(panel_columns_here<float>()),
        panels(pieces_of(plan.filters, columns)),
        inner(round_up(plan.channels, columns / 2)),
        place(panels * inner * columns + gap) {}
};

// The convolution of dy that gives dx: filters and channels change places, windows are turned round.
Conv2dPlan turned(const Conv2dPlan& plan) {
  Conv2dPlan back = plan;
  std::swap(back.channels, back.filters);
  std::swap(back.in, back.out);
  back.window.padding = {2 - plan.window.padding.y, 2 - plan.window.padding.x};
  return back;
}

// G g Gᵀ for the filters of `plan`. fill(to, channel, filter, channels, filters) reads the taps of a few
// neighbouring channels and filters into [channel][tap][column].
template <class Fill>
void transform_weight(const Conv2dPlan& plan, float* transformed, const Fill& fill) {
  const WeightForm form(plan);
  constexpr std::int64_t some = 16;  // channels read at once: a line of the cache
  const std::int64_t blocks = pieces_of(form.inner, some);
  parallel_for(form.panels * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      using V = Lanes<bytes>;
      using Memory = Vector<float, bytes>;
      constexpr std::int64_t lanes = bytes / sizeof(float), columns = 2 * lanes;
      alignas(64) float taps[some * 9 * columns] = {};
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t panel = unit / blocks, first = unit % blocks * some, filter = panel * columns;
        const std::int64_t channels = std::min(some, plan.channels - first),
                           filters = std::min(columns, plan.filters - filter);
        if (channels < some || filters < columns) std::memset(taps, 0, sizeof taps);
        fill(taps, first, filter, channels, filters);
        for (std::int64_t c = 0; c < std::min(some, form.inner - first); ++c)
          for (std::int64_t v = 0; v < columns; v += lanes) {
            V g[9], half[18], u[places];
            for (int tap = 0; tap < 9; ++tap)
              g[tap] = *reinterpret_cast<const Memory*>(taps + (c * 9 + tap) * columns + v);
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j) of_filter(half + j, 3, g + j, 3);
#pragma GCC unroll 6
            for (int i = 0; i < patch; ++i) of_filter(u + i * patch, 1, half + i * 3, 1);
            float* const to = transformed + (panel * form.inner + first + c) * columns + v;
            for (int place = 0; place < places; ++place)
              *reinterpret_cast<Memory*>(to + place * form.place) = u[place];
          }
      }
    });
  });
}

struct Convolution {
  const Conv2dPlan& plan;
  WeightForm form;
  Tiles tiles;
  float* y;
  const float* x;
  const float* weight;
  RowEpilogue<float> epilogue;

  // Tiles worked on at once: their patches and results should stay in the second cache, and be enough to make
  // good use of each panel of weights.
  std::int64_t block_tiles(std::int64_t columns) const {
    const std::int64_t bytes = places * (form.inner + columns) * static_cast<std::int64_t>(sizeof(float));
    return std::clamp<std::int64_t>((std::int64_t{3} << 18) / bytes / row_group * row_group, 32, 96);
  }

  void run() const {
    for_each_split(
        tiles.count, form.panels,
        [&](std::int64_t first, std::int64_t last, std::int64_t first_panel, std::int64_t last_panel) {
          const std::int64_t columns = (last_panel - first_panel) * form.columns;
          const std::int64_t most = std::min(block_tiles(columns), round_up(last - first, row_group));
          const Buffer patches = scratch_of<float>(places * (most * form.inner + gap));
          const Buffer sums = scratch_of<float>(places * (most * columns + gap));
          with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
            for (std::int64_t tile = first; tile < last; tile += most)
              block<bytes>(tile, std::min(most, last - tile), first_panel, last_panel, as<float>(patches),
                           as<float>(sums));
          });
        });
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void block(std::int64_t first, std::int64_t count, std::int64_t first_panel,
                                    std::int64_t last_panel, float* patches, float* sums) const {
    using Tile = ProductTile<float, bytes>;
    const std::int64_t rows = round_up(count, row_group),
                       columns = (last_panel - first_panel) * Tile::columns;
    const std::int64_t patch_place = rows * form.inner + gap, sum_place = rows * columns + gap;
    for (std::int64_t t = 0; t < rows; t += row_group)
      transform_in<bytes>(first + t, first + count - 1, patches + t * form.inner, patch_place);
    for (int place = 0; place < places; ++place)
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel)
        for (std::int64_t row = 0; row < rows; row += Tile::rows) {
          Tile tile;
          tile.add_group(patches + place * patch_place + row / row_group * row_group * form.inner,
                         row % row_group, weight + place * form.place + panel * form.inner * Tile::columns,
                         form.inner);
          tile.store(sums + place * sum_place + row * columns + (panel - first_panel) * Tile::columns,
                     columns);
        }
    for (std::int64_t t = 0; t < count; ++t)
      transform_out<bytes>(first + t, sums + t * columns, sum_place, first_panel * Tile::columns, columns);
  }

  // A group of tiles from `tile` on; those after `last` are copies of it, whose results nobody reads.
  template <std::size_t bytes>
  [[gnu::always_inline]] void transform_in(std::int64_t tile, std::int64_t last, float* to,
                                           std::int64_t place_step) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    constexpr int together = inner_first<bytes> ? 4 : 1;
    for (int r = 0; r < row_group; r += together) {
      Square<patch> squares[together];
      for (int i = 0; i < together; ++i) {
        const Tiles::Place at = tiles.at(std::min(tile + r + i, last));
        squares[i].look(x, plan.in, plan.channels, at.image, at.y - plan.window.padding.y,
                        at.x - plan.window.padding.x);
      }
      for (std::int64_t c = 0; c < form.inner; c += lanes) {
        V out[together][places];
        for (int i = 0; i < together; ++i) transform_patch<bytes>(out[i], squares[i], c, plan.channels);
        if constexpr (inner_first<bytes>) {
          for (int place = 0; place < places; ++place) {
            V block[4] = {out[0][place], out[1][place], out[2][place], out[3][place]};
            transpose(block);
            for (int i = 0; i < 4; ++i)
              *reinterpret_cast<Memory*>(to + place * place_step + (c + i) * row_group + r) = block[i];
          }
        } else {
          for (int place = 0; place < places; ++place)
            *reinterpret_cast<Memory*>(to + place * place_step + r * form.inner + c) = out[0][place];
        }
      }
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void transform_out(std::int64_t tile, const float* from, std::int64_t place_step,
                                            std::int64_t first_filter, std::int64_t columns) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    const Tiles::Place at = tiles.at(tile);
    const std::int64_t height = std::min<std::int64_t>(results, plan.out.y - at.y),
                       width = std::min<std::int64_t>(results, plan.out.x - at.x);
    const std::int64_t line = plan.out.x * plan.filters;
    const std::int64_t corner = ((at.image * plan.out.y + at.y) * plan.out.x + at.x) * plan.filters;
    for (std::int64_t k = 0; k < columns; k += lanes) {
      const std::int64_t filter = first_filter + k, count = std::min(lanes, plan.filters - filter);
      if (count <= 0) break;
      V m[places], half[patch * results], out[results * results];
      for (int place = 0; place < places; ++place)
        m[place] = *reinterpret_cast<const Memory*>(from + place * place_step + k);
#pragma GCC unroll 6
      for (int j = 0; j < patch; ++j) to_results(half + j, patch, m + j, patch);
#pragma GCC unroll 4
      for (int i = 0; i < results; ++i) to_results(out + i * results, 1, half + i * patch, 1);
      for (std::int64_t i = 0; i < height; ++i)
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t to = corner + i * line + j * plan.filters + filter;
          write_lanes<bytes>(y + to, out[i * results + j], count, epilogue.at(filter, to));
        }
    }
  }
};

}  // namespace

bool winograd_takes(const Conv2dPlan& plan) {
  const Window three{.stride = {1, 1}, .padding = plan.window.padding, .dilation = {1, 1}};
  return plan.dtype == DType::f32 && plan.kernel == YX{3, 3} && plan.groups == 1 && plan.window == three &&
         plan.window.padding.y <= 2 && plan.window.padding.x <= 2 && plan.channels >= 16 &&
         plan.filters >= 16;
}

// Tiles may hang over the edge: at least a third of the multiplications must be saved.
bool winograd_pays(const Conv2dPlan& plan) {
  const Tiles tiles(plan);
  return winograd_takes(plan) && tiles.down * tiles.across * places <= 6 * plan.out.y * plan.out.x;
}

std::int64_t winograd_weight_size(const Conv2dPlan& plan) {
  return places * WeightForm(plan).place;
}

void transform_winograd_weight(const Conv2dPlan& plan, float* transformed, const float* weight) {
  const std::int64_t columns = panel_columns_here<float>();
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
  Convolution{plan, WeightForm(plan), Tiles(plan), y, x, transformed, epilogue}.run();
}

void winograd_input_gradient(const Conv2dPlan& plan, float* dx, const float* dy, const float* weight) {
  const Conv2dPlan back = turned(plan);
  const Buffer transformed = scratch_of<float>(winograd_weight_size(back));
  // What is a channel of dy is a filter of the weight, and the last tap comes first.
  const std::int64_t columns = panel_columns_here<float>();
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

// dg = Gᵀ [Σ over tiles of (A dy Aᵀ) ⊙ (Bᵀ d B)] G. The team transforms a block of tiles, both factors as
// panels [place][panel][tile][column], then each member adds its products; the blocks depend on the sizes
// alone.
struct WeightGradient {
  const Conv2dPlan& plan;
  Tiles tiles;
  std::int64_t columns, channel_panels, filter_panels, block;
  float *sums, *patches, *gradients;  // sums: [panel of channels][group of filters][place][filter][column]

  std::int64_t filter_groups() const { return pieces_of(plan.filters, row_group); }
  float* sums_of(std::int64_t panel, std::int64_t filter, std::int64_t place) const {
    return sums + (((panel * filter_groups() + filter / row_group) * places + place) * row_group +
                   filter % row_group) *
                      columns;
  }
  std::int64_t patch_place() const { return channel_panels * columns * block + gap; }
  std::int64_t gradient_place() const { return filter_panels * columns * block + gap; }

  template <std::size_t bytes>
  [[gnu::always_inline]] void run(const TeamMember& me, const float* dy, const float* x,
                                  float* dweight) const {
    for (std::int64_t first = 0; first < tiles.count; first += block) {
      const std::int64_t count = std::min(block, tiles.count - first);
      for (std::int64_t t = me.begin(count); t < me.end(count); ++t) transform<bytes>(first + t, t, dy, x);
      me.meet();
      multiply<bytes>(me, count, first > 0);
      me.meet();
    }
    write<bytes>(me, dweight);
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void transform(std::int64_t tile, std::int64_t slot, const float* dy,
                                        const float* x) const {
    using V = Lanes<bytes>;
    using Memory = Vector<float, bytes>;
    constexpr std::int64_t lanes = bytes / sizeof(float);
    const Tiles::Place at = tiles.at(tile);
    Square<patch> square;
    square.look(x, plan.in, plan.channels, at.image, at.y - plan.window.padding.y,
                at.x - plan.window.padding.x);
    for (std::int64_t c = 0; c < channel_panels * columns; c += lanes) {
      V out[places];
      transform_patch<bytes>(out, square, c, plan.channels);
      float* const to = patches + (c / columns * block + slot) * columns + c % columns;
      for (int place = 0; place < places; ++place)
        *reinterpret_cast<Memory*>(to + place * patch_place()) = out[place];
    }
    Square<results> after;
    after.look(dy, plan.out, plan.filters, at.image, at.y, at.x);
    for (std::int64_t k = 0; k < filter_panels * columns; k += lanes) {
      V d[results * results], half[patch * results], out[places];
      after.load<bytes>(d, k, plan.filters);
#pragma GCC unroll 4
      for (int j = 0; j < results; ++j) of_results(half + j, results, d + j, results);
#pragma GCC unroll 6
      for (int i = 0; i < patch; ++i) of_results(out + i * patch, 1, half + i * results, 1);
      float* const to = gradients + (k / columns * block + slot) * columns + k % columns;
      for (int place = 0; place < places; ++place)
        *reinterpret_cast<Memory*>(to + place * gradient_place()) = out[place];
    }
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void multiply(const TeamMember& me, std::int64_t count, bool add) const {
    using Tile = ProductTile<float, bytes>;
    const std::int64_t filters = filter_groups() * row_group, units = places * channel_panels;
    for (std::int64_t unit = me.begin(units); unit < me.end(units); ++unit) {
      const std::int64_t place = unit / channel_panels, panel = unit % channel_panels;
      for (std::int64_t filter = 0; filter < filters; filter += Tile::rows) {
        float* const at = sums_of(panel, filter, place);
        Tile tile;
        if (add) tile.load(at, columns);
        tile.add_columns(
            gradients + place * gradient_place() + filter / columns * block * columns + filter % columns,
            columns, patches + place * patch_place() + panel * block * columns, count);
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
        V u[places], half[3 * patch], g[9];
        const float* const from = sums_of(panel, filter, 0) + c % columns;
        for (int place = 0; place < places; ++place)
          u[place] = *reinterpret_cast<const Memory*>(from + place * row_group * columns);
#pragma GCC unroll 6
        for (int j = 0; j < patch; ++j) to_filter(half + j, patch, u + j, patch);
#pragma GCC unroll 3
        for (int i = 0; i < 3; ++i) to_filter(g + i * 3, 1, half + i * patch, 1);
        const std::int64_t here = std::min(lanes, plan.channels - c);
        for (int tap = 0; tap < 9; ++tap) {
          alignas(64) float some[lanes];
          *reinterpret_cast<Memory*>(some) = g[tap];
          std::memcpy(dweight + (filter * 9 + tap) * plan.channels + c, some,
                      static_cast<std::size_t>(here) * sizeof(float));
        }
      }
    }
  }
};

}  // namespace

void winograd_weight_gradient(const Conv2dPlan& plan, float* dweight, const float* dy, const float* x) {
  const Tiles tiles(plan);
  const std::int64_t columns = panel_columns_here<float>();
  WeightGradient gradient{.plan = plan,
                          .tiles = tiles,
                          .columns = columns,
                          .channel_panels = pieces_of(plan.channels, columns),
                          .filter_panels = pieces_of(plan.filters, columns)};
  const std::int64_t tile_size = places * (plan.channels + plan.filters);
  gradient.block = std::min(tiles.count, std::clamp<std::int64_t>((1 << 19) / tile_size, 64, 128));
  const Buffer sums =
      scratch_of<float>(gradient.channel_panels * gradient.filter_groups() * places * row_group * columns);
  const Buffer patches = scratch_of<float>(places * gradient.patch_place());
  const Buffer gradients = scratch_of<float>(places * gradient.gradient_place());
  gradient.sums = as<float>(sums);
  gradient.patches = as<float>(patches);
  gradient.gradients = as<float>(gradients);
  run_team(thread_count(), [&](const TeamMember& me) {
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { gradient.run<bytes>(me, dy, x, dweight); });
  });
}

}  // namespace tandem
