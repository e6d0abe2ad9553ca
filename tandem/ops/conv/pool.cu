// Pooling on CUDA: one thread per pack of channels of a pixel. Gradients are gathered, so no atomics are
// needed and the bits are the same in every run.
#include "tandem/ops/conv/pool_kernel.h"

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

template <class T>
constexpr int max_width = static_cast<int>(16 / sizeof(T));

// The pixel and the first channel of a thread.
struct Position {
  std::int64_t image, y, x, channel;
};

__device__ Position position_of(std::int64_t i, std::int64_t packs, int width, YX size) {
  const std::int64_t pixel = i / packs;
  return {pixel / (size.x * size.y), pixel / size.x % size.y, pixel % size.x, i % packs * width};
}

__device__ std::int64_t offset_of(const Position& at, std::int64_t y, std::int64_t x, YX size,
                                  std::int64_t channels) {
  return ((at.image * size.y + y) * size.x + x) * channels + at.channel;
}

// Calls f(image, row) for the images and rows of this block: gridDim.y counts rows, gridDim.z images. The
// threads of the block work along a row, which needs few divisions.
template <class F>
__device__ void for_rows(const PoolPlan& p, std::int64_t rows, F&& f) {
  for (std::int64_t image = blockIdx.z; image < p.images; image += gridDim.z)
    for (auto row = static_cast<int>(blockIdx.y); row < rows; row += static_cast<int>(gridDim.y))
      f(image, row);
}

template <int width, class T>
__device__ void max_pool_row(const PoolPlan& p, std::int64_t image, int out_row, T* __restrict__ y,
                             std::uint8_t* __restrict__ argmax, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const int packs = static_cast<int>(p.channels) / width;
  const int kernel_y = static_cast<int>(p.kernel.y), kernel_x = static_cast<int>(p.kernel.x);
  const int out_x = static_cast<int>(p.out.x), in_x = static_cast<int>(p.in.x),
            in_y = static_cast<int>(p.in.y);
  const int first_y = static_cast<int>(out_row * p.window.stride.y - p.window.padding.y);
  const T* const from = x + image * p.in.y * p.in.x * p.channels;
  const std::int64_t line = (image * p.out.y + out_row) * p.out.x * p.channels;
  for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < out_x * packs;
       i += static_cast<int>(gridDim.x) * threads) {
    const int channel = i % packs * width;
    const int first_x = static_cast<int>(i / packs * p.window.stride.x - p.window.padding.x);
    C best[width];
    Pack<std::uint8_t, width> best_tap;
    bool is_first = true;
    for (int ky = 0; ky < kernel_y; ++ky) {
      const int row = first_y + ky * static_cast<int>(p.window.dilation.y);
      if (row < 0 || row >= in_y) continue;
      for (int kx = 0; kx < kernel_x; ++kx) {
        const int column = first_x + kx * static_cast<int>(p.window.dilation.x);
        if (column < 0 || column >= in_x) continue;
        const auto values = load_pack<width>(from + std::int64_t{row * in_x + column} * p.channels + channel);
#pragma unroll
        for (int j = 0; j < width; ++j) {
          const C value = convert<C>(values.value[j]);
          if (is_first || value > best[j] || value != value) {
            best[j] = value;
            best_tap.value[j] = static_cast<std::uint8_t>(ky * kernel_x + kx);
          }
        }
        is_first = false;
      }
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(best[j]);
    reinterpret_cast<Pack<T, width>*>(y + line)[i] = result;
    if (argmax) reinterpret_cast<Pack<std::uint8_t, width>*>(argmax + line)[i] = best_tap;
  }
}

// The same for windows of `size` × `size` without dilation: all of a window's loads are in flight at once.
template <int size, int width, class T>
__device__ void max_pool_row_of_size(const PoolPlan& p, std::int64_t image, int out_row, T* __restrict__ y,
                                     std::uint8_t* __restrict__ argmax, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const int channels = static_cast<int>(p.channels), packs = channels / width;
  const int in_x = static_cast<int>(p.in.x), in_y = static_cast<int>(p.in.y);
  const int stride_x = static_cast<int>(p.window.stride.x), padding_x = static_cast<int>(p.window.padding.x);
  const int first_y = static_cast<int>(out_row * p.window.stride.y - p.window.padding.y);
  const T* const from = x + image * p.in.y * p.in.x * p.channels;
  const std::int64_t line = (image * p.out.y + out_row) * p.out.x * p.channels;
  for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
       i < static_cast<int>(p.out.x) * packs; i += static_cast<int>(gridDim.x) * threads) {
    const int channel = i % packs * width, first_x = i / packs * stride_x - padding_x;
    Pack<T, width> values[size * size];
    bool inside[size * size];
#pragma unroll
    for (int tap = 0; tap < size * size; ++tap) {
      const int row = first_y + tap / size, column = first_x + tap % size;
      inside[tap] = row >= 0 && row < in_y && column >= 0 && column < in_x;
      if (inside[tap])
        values[tap] = load_pack<width>(from + std::int64_t{row * in_x + column} * channels + channel);
    }
    C best[width];
    Pack<std::uint8_t, width> best_tap;
    bool is_first = true;
#pragma unroll
    for (int tap = 0; tap < size * size; ++tap) {
      if (!inside[tap]) continue;
#pragma unroll
      for (int j = 0; j < width; ++j) {
        const C value = convert<C>(values[tap].value[j]);
        if (is_first || value > best[j] || value != value) {
          best[j] = value;
          best_tap.value[j] = static_cast<std::uint8_t>(tap);
        }
      }
      is_first = false;
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(best[j]);
    reinterpret_cast<Pack<T, width>*>(y + line)[i] = result;
    if (argmax) reinterpret_cast<Pack<std::uint8_t, width>*>(argmax + line)[i] = best_tap;
  }
}

template <int size, int width, class T>
__global__ void __launch_bounds__(threads)
    max_pool_of_size(PoolPlan p, T* __restrict__ y, std::uint8_t* __restrict__ argmax,
                     const T* __restrict__ x) {
  for_rows(p, p.out.y, [&](std::int64_t image, int row) {
    max_pool_row_of_size<size, width>(p, image, row, y, argmax, x);
  });
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    max_pool(PoolPlan p, T* __restrict__ y, std::uint8_t* __restrict__ argmax, const T* __restrict__ x) {
  for_rows(p, p.out.y,
           [&](std::int64_t image, int row) { max_pool_row<width>(p, image, row, y, argmax, x); });
}

// The outputs along one axis whose windows span the pixel: first … last.
__device__ void windows_over(int pixel, int kernel, int stride, int padding, int dilation, int outputs,
                             int& first, int& last) {
  const int extent = dilation * (kernel - 1), low = pixel + padding - extent;
  first = low <= 0 ? 0 : (low + stride - 1) / stride;
  last = min((pixel + padding) / stride, outputs - 1);
}

template <int width, class T>
__device__ void max_pool_gradient_row(const PoolPlan& p, std::int64_t image, int row, T* __restrict__ dx,
                                      const T* __restrict__ dy, const std::uint8_t* __restrict__ argmax) {
  using C = ComputeType<T>;
  const int packs = static_cast<int>(p.channels) / width;
  const int kernel_y = static_cast<int>(p.kernel.y), kernel_x = static_cast<int>(p.kernel.x);
  const int stride_y = static_cast<int>(p.window.stride.y), stride_x = static_cast<int>(p.window.stride.x);
  const int padding_y = static_cast<int>(p.window.padding.y),
            padding_x = static_cast<int>(p.window.padding.x);
  const int dilation_y = static_cast<int>(p.window.dilation.y),
            dilation_x = static_cast<int>(p.window.dilation.x);
  const int out_x = static_cast<int>(p.out.x), in_x = static_cast<int>(p.in.x);
  int y0, y1;
  windows_over(row, kernel_y, stride_y, padding_y, dilation_y, static_cast<int>(p.out.y), y0, y1);
  const std::int64_t from_image = image * p.out.y * p.out.x * p.channels;
  auto* const to = reinterpret_cast<Pack<T, width>*>(dx + (image * p.in.y + row) * p.in.x * p.channels);
  for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < in_x * packs;
       i += static_cast<int>(gridDim.x) * threads) {
    const int column = i / packs, channel = i % packs * width;
    int x0, x1;
    windows_over(column, kernel_x, stride_x, padding_x, dilation_x, out_x, x0, x1);
    C sum[width] = {};
    for (int y = y0; y <= y1; ++y) {
      const int offset_y = row + padding_y - y * stride_y;
      if (dilation_y > 1 && offset_y % dilation_y != 0) continue;
      for (int x = x0; x <= x1; ++x) {
        const int offset_x = column + padding_x - x * stride_x;
        if (dilation_x > 1 && offset_x % dilation_x != 0) continue;
        const int tap_y = dilation_y > 1 ? offset_y / dilation_y : offset_y;
        const int tap_x = dilation_x > 1 ? offset_x / dilation_x : offset_x;
        const auto tap = static_cast<std::uint8_t>(tap_y * kernel_x + tap_x);
        const std::int64_t from = from_image + std::int64_t{y * out_x + x} * p.channels + channel;
        const auto best = load_pack<width>(argmax + from);
        const auto gradient = load_pack<width>(dy + from);
#pragma unroll
        for (int j = 0; j < width; ++j)
          if (best.value[j] == tap) sum[j] += convert<C>(gradient.value[j]);
      }
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(sum[j]);
    to[i] = result;
  }
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    max_pool_gradient(PoolPlan p, T* __restrict__ dx, const T* __restrict__ dy,
                      const std::uint8_t* __restrict__ argmax) {
  for_rows(p, p.in.y,
           [&](std::int64_t image, int row) { max_pool_gradient_row<width>(p, image, row, dx, dy, argmax); });
}

// Windows of size × size pixels that do not overlap, without padding: one thread per window and pack, which
// reads the gradient once and writes all of its pixels. Pixels beyond the last whole window get 0.
template <int size, int width, class T>
__global__ void __launch_bounds__(threads)
    separate_max_pool_gradient(PoolPlan p, unsigned cells_y, unsigned cells_x, unsigned count,
                               T* __restrict__ dx, const T* __restrict__ dy,
                               const std::uint8_t* __restrict__ argmax) {
  using C = ComputeType<T>;
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  const auto packs = static_cast<unsigned>(p.channels) / width;
  const unsigned cell = i / packs, channel = i % packs * width;
  const unsigned column = cell % cells_x, row = cell / cells_x % cells_y;
  const std::int64_t image = cell / cells_x / cells_y;
  Pack<T, width> gradient{};
  Pack<std::uint8_t, width> best;
#pragma unroll
  for (int j = 0; j < width; ++j) best.value[j] = 255;
  if (row < p.out.y && column < p.out.x) {
    const std::int64_t from = ((image * p.out.y + row) * p.out.x + column) * p.channels + channel;
    gradient = load_pack<width>(dy + from);
    best = load_pack<width>(argmax + from);
  }
#pragma unroll
  for (int tap = 0; tap < size * size; ++tap) {
    const std::int64_t y = row * size + tap / size, x = column * size + tap % size;
    if (y >= p.in.y || x >= p.in.x) continue;
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j)
      result.value[j] = convert<T>(best.value[j] == tap ? C{0} + convert<C>(gradient.value[j]) : C{0});
    store_pack(dx + ((image * p.in.y + y) * p.in.x + x) * p.channels + channel, result);
  }
}

// Windows of 3 × 3 pixels at every second pixel, with a padding of at most 1: one thread per pack of a cell
// of 2 × 2 pixels, which at most 2 × 2 windows span. Along an axis, cell i has the pixels 2w + 1 − padding
// and the next one, where w = i + padding − 1: window w spans both of them, as its elements 1 and 2, and
// window w + 1 begins at the second one.
template <int width, class T>
__global__ void __launch_bounds__(threads, 3)
    half_max_pool_gradient(PoolPlan p, unsigned cells_y, unsigned cells_x, unsigned count, T* __restrict__ dx,
                           const T* __restrict__ dy, const std::uint8_t* __restrict__ argmax) {
  using C = ComputeType<T>;
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  const auto packs = static_cast<unsigned>(p.channels) / width;
  const unsigned cell = i / packs, channel = i % packs * width;
  const std::int64_t image = cell / cells_x / cells_y;
  const int padding_y = static_cast<int>(p.window.padding.y),
            padding_x = static_cast<int>(p.window.padding.x);
  const int window_y = static_cast<int>(cell / cells_x % cells_y) + padding_y - 1,
            window_x = static_cast<int>(cell % cells_x) + padding_x - 1;
  const int first_y = 2 * window_y + 1 - padding_y, first_x = 2 * window_x + 1 - padding_x;
  Pack<T, width> gradients[2][2];
  Pack<std::uint8_t, width> best[2][2];
#pragma unroll
  for (int window = 0; window < 4; ++window) {
    const int y = window_y + window / 2, x = window_x + window % 2;
    auto& gradient = gradients[window / 2][window % 2];
    auto& taps = best[window / 2][window % 2];
    if (y >= 0 && y < p.out.y && x >= 0 && x < p.out.x) {
      const std::int64_t from = ((image * p.out.y + y) * p.out.x + x) * p.channels + channel;
      gradient = load_pack<width>(dy + from);
      taps = load_pack<width>(argmax + from);
    } else {
#pragma unroll
      for (int j = 0; j < width; ++j) gradient.value[j] = convert<T>(C{0}), taps.value[j] = 255;
    }
  }
#pragma unroll
  for (int pixel = 0; pixel < 4; ++pixel) {
    const int own_y = pixel / 2, own_x = pixel % 2;
    const int y = first_y + own_y, x = first_x + own_x;
    if (y < 0 || y >= p.in.y || x < 0 || x >= p.in.x) continue;
    C sum[width] = {};
#pragma unroll
    for (int window = 0; window < 4; ++window) {
      const int tap_y = own_y + 1 - window / 2 * 2, tap_x = own_x + 1 - window % 2 * 2;
      if (tap_y < 0 || tap_x < 0) continue;
#pragma unroll
      for (int j = 0; j < width; ++j)
        if (best[window / 2][window % 2].value[j] == tap_y * 3 + tap_x)
          sum[j] += convert<C>(gradients[window / 2][window % 2].value[j]);
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(sum[j]);
    store_pack(dx + ((image * p.in.y + y) * p.in.x + x) * p.channels + channel, result);
  }
}

// The rows (or columns) that output `at` averages, and what their sum is divided by.
struct Region {
  std::int64_t begin, end, divisor;
};

__device__ Region region_of(bool adaptive, std::int64_t at, std::int64_t size, std::int64_t outputs,
                            std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (adaptive) {
    const std::int64_t begin = at * size / outputs, end = ((at + 1) * size + outputs - 1) / outputs;
    return {begin, end, end - begin};
  }
  // Padding counts, and windows never extend beyond it, so the divisor is always the kernel size.
  const std::int64_t begin = at * stride - padding;
  return {max(begin, std::int64_t{0}), min(begin + kernel, size), kernel};
}

// Out: T, or f32 for means of bf16.
template <int width, class T, class Out>
__global__ void __launch_bounds__(threads)
    avg_pool(PoolPlan p, bool adaptive, std::int64_t count, Out* __restrict__ y, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Position at = position_of(i, packs, width, p.out);
    const Region rows =
        region_of(adaptive, at.y, p.in.y, p.out.y, p.kernel.y, p.window.stride.y, p.window.padding.y);
    const Region columns =
        region_of(adaptive, at.x, p.in.x, p.out.x, p.kernel.x, p.window.stride.x, p.window.padding.x);
    C sum[width] = {};
    for (std::int64_t in_y = rows.begin; in_y < rows.end; ++in_y)
      for (std::int64_t in_x = columns.begin; in_x < columns.end; ++in_x) {
        const auto values = load_pack<width>(x + offset_of(at, in_y, in_x, p.in, p.channels));
#pragma unroll
        for (int j = 0; j < width; ++j) sum[j] += convert<C>(values.value[j]);
      }
    Pack<Out, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j)
      result.value[j] = convert<Out>(sum[j] / static_cast<C>(rows.divisor * columns.divisor));
    reinterpret_cast<Pack<Out, width>*>(y)[i] = result;
  }
}

// The means of whole images where those are few: 16 threads share the pixels of a pack. In bf16 only, so that
// the bits of an image in f32 do not depend on the size of its batch.
constexpr int parts = 16, packs_per_block = threads / parts;

template <int width, class T, class Out>
__global__ void __launch_bounds__(threads)
    mean_of_few(PoolPlan p, std::int64_t count, Out* __restrict__ y, const T* __restrict__ x) {
  using C = ComputeType<T>;
  __shared__ C sums[parts][packs_per_block][width];
  const int part = static_cast<int>(threadIdx.x) / packs_per_block,
            at = static_cast<int>(threadIdx.x) % packs_per_block;
  const int i = static_cast<int>(blockIdx.x) * packs_per_block + at,
            packs = static_cast<int>(p.channels) / width;
  const int pixels = static_cast<int>(p.in.y * p.in.x);
  C sum[width] = {};
  if (i < count) {
    const T* const from = x + std::int64_t{i / packs} * pixels * p.channels + i % packs * width;
#pragma unroll 4
    for (int pixel = part; pixel < pixels; pixel += parts) {
      const auto values = load_pack<width>(from + pixel * p.channels);
#pragma unroll
      for (int j = 0; j < width; ++j) sum[j] += convert<C>(values.value[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < width; ++j) sums[part][at][j] = sum[j];
  __syncthreads();
  if (part != 0 || i >= count) return;
  Pack<Out, width> result;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    C total = sum[j];
#pragma unroll
    for (int other = 1; other < parts; ++other) total += sums[other][at][j];
    result.value[j] = convert<Out>(total / static_cast<C>(pixels));
  }
  reinterpret_cast<Pack<Out, width>*>(y)[i] = result;
}

template <int width, class T>
__global__ void __launch_bounds__(threads) avg_pool_gradient(PoolPlan p, bool adaptive, std::int64_t count,
                                                             T* __restrict__ dx, const T* __restrict__ dy) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Position at = position_of(i, packs, width, p.in);
    int y0, y1, x0, x1;
    if (adaptive) {
      y0 = static_cast<int>(at.y * p.out.y / p.in.y),
      y1 = static_cast<int>(((at.y + 1) * p.out.y - 1) / p.in.y);
      x0 = static_cast<int>(at.x * p.out.x / p.in.x),
      x1 = static_cast<int>(((at.x + 1) * p.out.x - 1) / p.in.x);
    } else {
      windows_over(static_cast<int>(at.y), static_cast<int>(p.kernel.y), static_cast<int>(p.window.stride.y),
                   static_cast<int>(p.window.padding.y), 1, static_cast<int>(p.out.y), y0, y1);
      windows_over(static_cast<int>(at.x), static_cast<int>(p.kernel.x), static_cast<int>(p.window.stride.x),
                   static_cast<int>(p.window.padding.x), 1, static_cast<int>(p.out.x), x0, x1);
    }
    C sum[width] = {};
    for (std::int64_t y = y0; y <= y1; ++y)
      for (std::int64_t x = x0; x <= x1; ++x) {
        const Region rows =
            region_of(adaptive, y, p.in.y, p.out.y, p.kernel.y, p.window.stride.y, p.window.padding.y);
        const Region columns =
            region_of(adaptive, x, p.in.x, p.out.x, p.kernel.x, p.window.stride.x, p.window.padding.x);
        const auto share = C{1} / static_cast<C>(rows.divisor * columns.divisor);
        const auto gradient = load_pack<width>(dy + offset_of(at, y, x, p.out, p.channels));
#pragma unroll
        for (int j = 0; j < width; ++j) sum[j] += share * convert<C>(gradient.value[j]);
      }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(sum[j]);
    reinterpret_cast<Pack<T, width>*>(dx)[i] = result;
  }
}

// The gradient of the means of whole images: blockIdx.y counts images, and each thread writes one pack of
// some of their pixels.
template <int width, class T>
__global__ void __launch_bounds__(threads)
    image_mean_gradient(PoolPlan p, T* __restrict__ dx, const T* __restrict__ dy) {
  using C = ComputeType<T>;
  const int packs = static_cast<int>(p.channels) / width, pixels = static_cast<int>(p.in.y * p.in.x);
  const int pack = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x) % 32;
  if (pack >= packs) return;
  const auto share = C{1} / static_cast<C>(pixels);
  for (std::int64_t image = blockIdx.y; image < p.images; image += gridDim.y) {
    const auto gradient = load_pack<width>(dy + image * p.channels + pack * width);
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j)
      result.value[j] = convert<T>(C{0} + share * convert<C>(gradient.value[j]));
    T* const to = dx + image * pixels * p.channels + pack * width;
    for (int pixel = static_cast<int>(threadIdx.x) / 32; pixel < pixels; pixel += threads / 32)
      store_pack(to + pixel * p.channels, result);
  }
}

// Calls f.operator()<T, width>(number of packs of all images of `size`) with the widest pack that divides the
// channels.
template <class F>
void on_packs(const PoolPlan& plan, YX size, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "pool2d", [&]<class T>() {
    const std::int64_t count = plan.images * size.y * size.x * plan.channels;
    if (plan.channels % max_width<T> == 0)
      f.template operator()<T, max_width<T>>(count / max_width<T>);
    else
      f.template operator()<T, 1>(count);
  });
  check_launch("pool2d");
}

// One block per (part of a) row of an image, up to CUDA's grid limits.
dim3 row_grid(const PoolPlan& plan, YX size, int width) {
  constexpr std::int64_t max_grid = 65535;
  return dim3(blocks_for(size.x * plan.channels / width, threads),
              static_cast<unsigned>(std::min(size.y, max_grid)),
              static_cast<unsigned>(std::min(plan.images, max_grid)));
}

template <int width, class T, class Out>
void average(const PoolPlan& plan, bool adaptive, std::int64_t count, Out* y, const T* x, StreamView stream) {
  constexpr std::int64_t few = 2048;
  if constexpr (std::same_as<T, BFloat16>)
    if (adaptive && plan.out == YX{1, 1} && count < few && plan.in.y * plan.in.x <= INT32_MAX) {
      mean_of_few<width, T, Out>
          <<<blocks_for(count, packs_per_block), threads, 0, cuda_stream(stream)>>>(plan, count, y, x);
      return;
    }
  avg_pool<width, T, Out>
      <<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(plan, adaptive, count, y, x);
}

}  // namespace

template <>
void max_pool2d_kernel<Backend::cuda>(const PoolPlan& plan, std::byte* y, std::uint8_t* argmax,
                                      const std::byte* x, StreamView stream) {
  on_packs(plan, plan.out, [&]<class T, int width>(std::int64_t) {
    const auto launch = [&](auto kernel) {
      kernel<<<row_grid(plan, plan.out, width), threads, 0, cuda_stream(stream)>>>(
          plan, reinterpret_cast<T*>(y), argmax, reinterpret_cast<const T*>(x));
    };
    if (plan.kernel == YX{3, 3} && plan.window.dilation == YX{1, 1})
      launch(max_pool_of_size<3, width, T>);
    else if (plan.kernel == YX{2, 2} && plan.window.dilation == YX{1, 1})
      launch(max_pool_of_size<2, width, T>);
    else
      launch(max_pool<width, T>);
  });
}

template <>
void max_pool2d_gradient_kernel<Backend::cuda>(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                               const std::uint8_t* argmax, StreamView stream) {
  const std::int64_t size = plan.kernel.x;
  constexpr std::int64_t max_threads = std::int64_t{1} << 28;
  const Window& window = plan.window;
  const bool is_separate = plan.kernel.y == size && window.stride == plan.kernel &&
                           window.padding == YX{0, 0} && window.dilation == YX{1, 1};
  const bool is_half = plan.kernel == YX{3, 3} && window.stride == YX{2, 2} && window.padding.y <= 1 &&
                       window.padding.x <= 1 && window.dilation == YX{1, 1};
  const YX cells = is_half
                       ? YX{(plan.in.y - window.padding.y + 2) / 2, (plan.in.x - window.padding.x + 2) / 2}
                       : YX{(plan.in.y + size - 1) / size, (plan.in.x + size - 1) / size};
  on_packs(plan, plan.in, [&]<class T, int width>(std::int64_t) {
    const std::int64_t count = plan.images * cells.y * cells.x * plan.channels / width;
    const auto launch = [&](auto kernel) {
      kernel<<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
          plan, static_cast<unsigned>(cells.y), static_cast<unsigned>(cells.x), static_cast<unsigned>(count),
          reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy), argmax);
    };
    if (is_half && count <= max_threads) return launch(half_max_pool_gradient<width, T>);
    if (is_separate && size == 2 && count <= max_threads)
      return launch(separate_max_pool_gradient<2, width, T>);
    if (is_separate && size == 3 && count <= max_threads)
      return launch(separate_max_pool_gradient<3, width, T>);
    max_pool_gradient<width, T><<<row_grid(plan, plan.in, width), threads, 0, cuda_stream(stream)>>>(
        plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy), argmax);
  });
}

template <>
void avg_pool2d_kernel<Backend::cuda>(const PoolPlan& plan, bool adaptive, std::byte* y, const std::byte* x,
                                      StreamView stream) {
  on_packs(plan, plan.out, [&]<class T, int width>(std::int64_t count) {
    average<width>(plan, adaptive, count, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), stream);
  });
}

template <>
void bf16_image_mean_kernel<Backend::cuda>(const PoolPlan& plan, float* y, const std::byte* x,
                                           StreamView stream) {
  on_packs(plan, plan.out, [&]<class T, int width>(std::int64_t count) {
    if constexpr (std::same_as<T, BFloat16>)
      average<width>(plan, true, count, y, reinterpret_cast<const T*>(x), stream);
  });
}

template <>
void avg_pool2d_gradient_kernel<Backend::cuda>(const PoolPlan& plan, bool adaptive, std::byte* dx,
                                               const std::byte* dy, StreamView stream) {
  on_packs(plan, plan.in, [&]<class T, int width>(std::int64_t count) {
    if (adaptive && plan.out == YX{1, 1} && plan.in.y * plan.in.x <= INT32_MAX) {
      const dim3 grid(blocks_for(plan.channels / width, 32),
                      static_cast<unsigned>(std::min<std::int64_t>(plan.images, 65535)));
      image_mean_gradient<width, T><<<grid, threads, 0, cuda_stream(stream)>>>(
          plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy));
      return;
    }
    avg_pool_gradient<width, T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, adaptive, count, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy));
  });
}

}  // namespace tandem::detail
