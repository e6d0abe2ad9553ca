#include "tandem/ops/conv/depthwise.h"

#include <algorithm>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/depthwise_pass.h"
#include "tandem/ops/fused_activation_cpu.h"

namespace tandem::detail {
namespace {

template <class T>
struct DepthwiseRows {
  const DepthwisePass& pass;
  T* to;
  const T* from;
  const T* packed;
  RowEpilogue<T> epilogue;

  void run() const {
    const std::int64_t chunks = ceil_div(pass.channels, chunk_channels<T>);
    const std::int64_t work =
        pass.grid.x * std::min(pass.channels, chunk_channels<T>) * (std::ssize(pass.taps) + 1);
    const std::int64_t grain = std::max<std::int64_t>((1 << 15) / work, 1);
    parallel_for(pass.images * chunks * pass.grid.y, grain, [&](std::int64_t begin, std::int64_t end) {
      RowTaps taps;
      compute_rows({begin, end}, taps);
    });
  }

  // Rows of the grid, counted through all chunks of channels of all images.
  void compute_rows(IndexRange rows, RowTaps& taps) const {
    const std::int64_t chunks = ceil_div(pass.channels, chunk_channels<T>);
    with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
      for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
        const std::int64_t row = unit % pass.grid.y, image = unit / pass.grid.y / chunks;
        const std::int64_t first = unit / pass.grid.y % chunks * chunk_channels<T>;
        const Chunk chunk{image, row, first, std::min(first + chunk_channels<T>, pass.channels)};
        compute_row<bytes>(chunk, taps.row, taps.pixel);
      }
    });
  }

 private:
  struct Chunk {
    std::int64_t image, row, first, last;  // channels
  };

  template <std::size_t bytes>
  [[gnu::always_inline]] void compute_row(const Chunk& chunk, ValidTaps& row_taps,
                                          ValidTaps& pixel_taps) const {
    row_taps.clear();
    std::int64_t low = 0, high = pass.grid.x;  // the columns whose taps all lie inside the image
    for (const Tap& tap : pass.taps) {
      const std::int64_t y = pass.step.y * chunk.row + tap.offset.y;
      if (y < 0 || y >= pass.source.y) continue;
      row_taps.add((y * pass.source.x + tap.offset.x) * pass.channels, tap.weight * pass.weight_channels,
                   tap.offset.x);
      if (tap.offset.x < 0) low = std::max(low, ceil_div(-tap.offset.x, pass.step.x));
      const std::int64_t room = pass.source.x - 1 - tap.offset.x;
      high = std::min(high, room < 0 ? 0 : room / pass.step.x + 1);
    }
    low = std::min(low, pass.grid.x);
    constexpr int pixels = 4;
    std::int64_t column = 0;
    for (; column < low; ++column) border_pixel<bytes>(chunk, column, row_taps, pixel_taps);
    for (; column + pixels <= high; column += pixels) compute<bytes, pixels>(chunk, column, row_taps);
    for (; column < high; ++column) compute<bytes, 1>(chunk, column, row_taps);
    for (; column < pass.grid.x; ++column) border_pixel<bytes>(chunk, column, row_taps, pixel_taps);
    if (!needs_argument(epilogue.activation)) return;
    for (column = 0; column < pass.grid.x; ++column)
      activate_row(epilogue.activation, to + target_of(chunk, column, chunk.first), chunk.last - chunk.first);
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void border_pixel(const Chunk& chunk, std::int64_t column, const ValidTaps& row_taps,
                                           ValidTaps& pixel_taps) const {
    pixel_taps.clear();
    for (std::size_t i = 0; i < row_taps.source.size(); ++i) {
      const std::int64_t x = pass.step.x * column + row_taps.column[i];
      if (x >= 0 && x < pass.source.x)
        pixel_taps.add(row_taps.source[i], row_taps.weight[i], row_taps.column[i]);
    }
    compute<bytes, 1>(chunk, column, pixel_taps);
  }

  // All channels of a chunk for adjacent pixels, in the widest vectors that are left to fill. A single pixel
  // has more vectors at a time, so that enough sums are independent.
  template <std::size_t bytes, int pixels>
  [[gnu::always_inline]] void compute(const Chunk& chunk, std::int64_t column, const ValidTaps& taps) const {
    constexpr int wide = (has_32_registers || bytes == 64 ? 4 : 2) * (pixels == 1 ? 2 : 1);
    std::int64_t channel = chunk.first;
    compute_vectors<bytes, pixels, wide>(chunk, column, taps, channel);
    compute_vectors<bytes, pixels, 1>(chunk, column, taps, channel);
    if constexpr (bytes > 32) compute_vectors<bytes / 2, pixels, 1>(chunk, column, taps, channel);
    if constexpr (bytes > 16) compute_vectors<16, pixels, 1>(chunk, column, taps, channel);
    for (; channel < chunk.last; ++channel)
      for (int p = 0; p < pixels; ++p) {
        const T* const source = source_of(chunk, column + p, channel);
        T sum{0};
        for (std::size_t i = 0; i < taps.source.size(); ++i)
          sum += source[taps.source[i]] * packed[taps.weight[i] + channel];
        const std::int64_t at = target_of(chunk, column + p, channel);
        write_tail(to + at, &sum, 1, epilogue.offset_by(channel, at));
      }
  }

  template <std::size_t bytes, int pixels, int vectors>
  [[gnu::always_inline]] void compute_vectors(const Chunk& chunk, std::int64_t column, const ValidTaps& taps,
                                              std::int64_t& channel) const {
    using Memory = Vector<T, bytes>;
    typedef T Sum __attribute__((vector_size(bytes)));
    constexpr std::int64_t lanes = bytes / sizeof(T);
    const std::int64_t pixel_step = pass.step.x * pass.channels;
    const std::int64_t target_step = pass.target_step.x * pass.channels;
    for (; channel + vectors * lanes <= chunk.last; channel += vectors * lanes) {
      const T* const source = source_of(chunk, column, channel);
      Sum sums[pixels][vectors] = {};
      for (std::size_t i = 0; i < taps.source.size(); ++i) {
        const T* const tap = source + taps.source[i];
        const T* const weight = packed + taps.weight[i] + channel;
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          const Sum factor = *reinterpret_cast<const Memory*>(weight + v * lanes);
#pragma GCC unroll 8
          for (int p = 0; p < pixels; ++p)
            sums[p][v] += *reinterpret_cast<const Memory*>(tap + p * pixel_step + v * lanes) * factor;
        }
      }
      const std::int64_t at = target_of(chunk, column, channel);
#pragma GCC unroll 8
      for (int p = 0; p < pixels; ++p)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          const std::int64_t element = at + p * target_step + v * lanes;
          write_lanes<bytes>(to + element, sums[p][v], lanes,
                             epilogue.offset_by(channel + v * lanes, element));
        }
    }
  }

  // Where the taps of a pixel have their offsets from.
  [[gnu::always_inline]] const T* source_of(const Chunk& chunk, std::int64_t column,
                                            std::int64_t channel) const {
    return from + (chunk.image * pass.source.y * pass.source.x + pass.step.x * column) * pass.channels +
           channel;
  }
  [[gnu::always_inline]] std::int64_t target_of(const Chunk& chunk, std::int64_t column,
                                                std::int64_t channel) const {
    return pass.target_pixel(chunk.image, chunk.row, column) * pass.channels + channel;
  }
};

// dweight in blocks of rows of dy: in T within a block, in f64 over blocks. The blocks depend only on the
// sizes.
template <class T>
struct DepthwiseWeightGradient {
  const Conv2dPlan& plan;
  const T* dy;
  const T* x;

  std::int64_t block_rows() const { return std::clamp<std::int64_t>(1024 / plan.out.x, 1, 64); }

  void write(T* dweight) const {
    const std::int64_t rows = plan.images * plan.out.y, blocks = ceil_div(rows, block_rows());
    const std::int64_t taps = plan.kernel.y * plan.kernel.x, size = taps * plan.channels;
    const std::int64_t chunks = ceil_div(plan.channels, chunk_channels<T>);
    const Buffer buffer = make_scratch<T>(blocks * size);
    T* const partial = as<T>(buffer);
    parallel_for(blocks * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
      with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t block = unit / chunks, first = unit % chunks * chunk_channels<T>;
          const std::int64_t last = std::min(first + chunk_channels<T>, plan.channels);
          T* const sums = partial + block * size;
          for (std::int64_t tap = 0; tap < taps; ++tap)
            std::fill(sums + tap * plan.channels + first, sums + tap * plan.channels + last, T{0});
          for (std::int64_t row = block * block_rows(); row < std::min(rows, (block + 1) * block_rows());
               ++row)
            add_row<bytes>(sums, row, first, last);
        }
      });
    });
    parallel_for(plan.channels, 64, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> total(static_cast<std::size_t>(end - begin));
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        std::ranges::fill(total, 0.0);
        for (std::int64_t block = 0; block < blocks; ++block)
          for (std::int64_t c = begin; c < end; ++c)
            total[static_cast<std::size_t>(c - begin)] +=
                static_cast<double>(partial[block * size + tap * plan.channels + c]);
        for (std::int64_t c = begin; c < end; ++c)
          dweight[c * taps + tap] = static_cast<T>(total[static_cast<std::size_t>(c - begin)]);
      }
    });
  }

 private:
  // Taps of one kernel row that are summed at the same time.
  static constexpr int max_taps = 5;

  // The columns of dy that have this tap inside the image.
  struct Columns {
    std::int64_t begin, end;
  };
  [[gnu::always_inline]] Columns columns_of(std::int64_t kx) const {
    const std::int64_t offset = kx * plan.window.dilation.x - plan.window.padding.x;
    const std::int64_t room = plan.in.x - 1 - offset;
    const std::int64_t end = room < 0 ? 0 : std::min(plan.out.x, room / plan.window.stride.x + 1);
    return {offset < 0 ? std::min(ceil_div(-offset, plan.window.stride.x), end) : 0, end};
  }

  template <std::size_t bytes>
  [[gnu::always_inline]] void add_row(T* sums, std::int64_t row, std::int64_t first,
                                      std::int64_t last) const {
    const std::int64_t image = row / plan.out.y, out_y = row % plan.out.y;
    const T* const gradient = dy + row * plan.out.x * plan.channels;
    for (std::int64_t ky = 0; ky < plan.kernel.y; ++ky) {
      const std::int64_t y =
          out_y * plan.window.stride.y + ky * plan.window.dilation.y - plan.window.padding.y;
      if (y < 0 || y >= plan.in.y) continue;
      const T* const line = x + (image * plan.in.y + y) * plan.in.x * plan.channels;
      for (std::int64_t kx = 0; kx < plan.kernel.x; kx += max_taps) {
        T* const to = sums + (ky * plan.kernel.x + kx) * plan.channels;
        switch (std::min<std::int64_t>(max_taps, plan.kernel.x - kx)) {
          case 5:
            add_taps<bytes, 5>(to, gradient, line, kx, first, last);
            break;
          case 3:
            add_taps<bytes, 3>(to, gradient, line, kx, first, last);
            break;
          default:
            for (std::int64_t k = kx; k < std::min(kx + max_taps, plan.kernel.x); ++k)
              add_taps<bytes, 1>(sums + (ky * plan.kernel.x + k) * plan.channels, gradient, line, k, first,
                                 last);
        }
      }
    }
  }

  template <std::size_t bytes, int taps>
  [[gnu::always_inline]] void add_taps(T* to, const T* gradient, const T* line, std::int64_t kx,
                                       std::int64_t first, std::int64_t last) const {
    Columns each[taps], common{0, plan.out.x};
    std::int64_t offset[taps];
#pragma GCC unroll 5
    for (int k = 0; k < taps; ++k) {
      each[k] = columns_of(kx + k);
      common = {std::max(common.begin, each[k].begin), std::min(common.end, each[k].end)};
      offset[k] = ((kx + k) * plan.window.dilation.x - plan.window.padding.x) * plan.channels;
    }
    if (common.begin >= common.end) common = {0, 0};
    std::int64_t channel = first;
    const auto add = [&]<std::size_t size, int vectors>() __attribute__((always_inline)) {
      using Memory = Vector<T, size>;
      typedef T Sum __attribute__((vector_size(size)));
      constexpr std::int64_t lanes = size / sizeof(T);
      const std::int64_t step = plan.window.stride.x * plan.channels;
      const auto load = [](const T* at) __attribute__((always_inline)) {
        return static_cast<Sum>(*reinterpret_cast<const Memory*>(at));
      };
      for (; channel + vectors * lanes <= last; channel += vectors * lanes) {
        Sum sum[taps][vectors];
        const T* const g = gradient + channel;
        const T* const source = line + channel;
        T* const own = to + channel;
#pragma GCC unroll 10
        for (int i = 0; i < taps * vectors; ++i)
          sum[i / vectors][i % vectors] = load(own + i / vectors * plan.channels + i % vectors * lanes);
        for (std::int64_t column = common.begin; column < common.end; ++column)
#pragma GCC unroll 10
          for (int i = 0; i < taps * vectors; ++i)
            sum[i / vectors][i % vectors] +=
                load(source + column * step + offset[i / vectors] + i % vectors * lanes) *
                load(g + column * plan.channels + i % vectors * lanes);
#pragma GCC unroll 10
        for (int i = 0; i < taps * vectors; ++i) {
          const int k = i / vectors, v = i % vectors;
          const auto add_border = [&](std::int64_t begin, std::int64_t end) __attribute__((always_inline)) {
            for (std::int64_t column = begin; column < end; ++column)
              sum[k][v] += load(source + column * step + offset[k] + v * lanes) *
                           load(g + column * plan.channels + v * lanes);
          };
          add_border(each[k].begin, std::min(common.begin, each[k].end));
          add_border(std::max(common.end, each[k].begin), each[k].end);
          *reinterpret_cast<Memory*>(own + k * plan.channels + v * lanes) = sum[k][v];
        }
      }
    };
    add.template operator()<bytes, 2>();
    add.template operator()<bytes, 1>();
    if constexpr (bytes > 32) add.template operator()<bytes / 2, 1>();
    if constexpr (bytes > 16) add.template operator()<16, 1>();
    for (; channel < last; ++channel)
      for (int k = 0; k < taps; ++k) {
        T sum = to[k * plan.channels + channel];
        for (std::int64_t column = each[k].begin; column < each[k].end; ++column)
          sum += line[column * plan.window.stride.x * plan.channels + offset[k] + channel] *
                 gradient[column * plan.channels + channel];
        to[k * plan.channels + channel] = sum;
      }
  }
};

}  // namespace

template <class T>
void pack_depthwise_weight(const Conv2dPlan& plan, T* packed, const T* weight) {
  const std::int64_t taps = plan.kernel.y * plan.kernel.x;
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t c = 0; c < plan.channels; ++c) packed[tap * plan.channels + c] = weight[c * taps + tap];
}

void compute_depthwise_rows(const DepthwisePass& pass, float* to, const float* from, const float* packed,
                            const RowEpilogue<float>& epilogue, IndexRange rows, RowTaps& taps) {
  DepthwiseRows<float>{pass, to, from, packed, epilogue}.compute_rows(rows, taps);
}

template <class T>
void depthwise_conv2d(const Conv2dPlan& plan, T* y, const T* x, const T* packed,
                      const RowEpilogue<T>& epilogue) {
  const DepthwisePass pass = forward_pass(plan);
  DepthwiseRows<T>{pass, y, x, packed, epilogue}.run();
}

template <class T>
void depthwise_input_gradient(const Conv2dPlan& plan, T* dx, const T* dy, const T* packed) {
  for (const DepthwisePass& pass : input_gradient_passes(plan))
    DepthwiseRows<T>{pass, dx, dy, packed, {}}.run();
}

template <class T>
void depthwise_weight_gradient(const Conv2dPlan& plan, T* dweight, const T* dy, const T* x) {
  DepthwiseWeightGradient<T>{plan, dy, x}.write(dweight);
}

template void pack_depthwise_weight<float>(const Conv2dPlan&, float*, const float*);
template void pack_depthwise_weight<double>(const Conv2dPlan&, double*, const double*);
template void depthwise_conv2d<float>(const Conv2dPlan&, float*, const float*, const float*,
                                      const RowEpilogue<float>&);
template void depthwise_conv2d<double>(const Conv2dPlan&, double*, const double*, const double*,
                                       const RowEpilogue<double>&);
template void depthwise_input_gradient<float>(const Conv2dPlan&, float*, const float*, const float*);
template void depthwise_input_gradient<double>(const Conv2dPlan&, double*, const double*, const double*);
template void depthwise_weight_gradient<float>(const Conv2dPlan&, float*, const float*, const float*);
template void depthwise_weight_gradient<double>(const Conv2dPlan&, double*, const double*, const double*);

}  // namespace tandem::detail
