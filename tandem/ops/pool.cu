// Pooling on CUDA: a thread for each pack of channels of a result. Gradients are gathered, so nothing is
// added by two threads at once.
#include "tandem/ops/pool.h"

#include "tandem/ops/elementwise.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;

template <class T>
constexpr int widest = static_cast<int>(16 / sizeof(T));

// Which pixel and which channels a thread is at.
struct Place {
  std::int64_t image, y, x, channel;
};

__device__ Place place_of(std::int64_t i, std::int64_t packs, int width, YX size) {
  const std::int64_t pixel = i / packs;
  return {pixel / (size.x * size.y), pixel / size.x % size.y, pixel % size.x, i % packs * width};
}

__device__ std::int64_t offset_of(const Place& at, std::int64_t y, std::int64_t x, YX size,
                                  std::int64_t channels) {
  return ((at.image * size.y + y) * size.x + x) * channels + at.channel;
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    greatest(PoolPlan p, std::int64_t count, T* __restrict__ y, std::uint8_t* __restrict__ winners,
             const T* __restrict__ x) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Place at = place_of(i, packs, width, p.out);
    C best[width];
    Pack<std::uint8_t, width> winner;
    bool none = true;
    for (int ky = 0; ky < p.kernel.y; ++ky) {
      const std::int64_t in_y = at.y * p.window.stride.y + ky * p.window.dilation.y - p.window.padding.y;
      if (in_y < 0 || in_y >= p.in.y) continue;
      for (int kx = 0; kx < p.kernel.x; ++kx) {
        const std::int64_t in_x = at.x * p.window.stride.x + kx * p.window.dilation.x - p.window.padding.x;
        if (in_x < 0 || in_x >= p.in.x) continue;
        const auto values =
            *reinterpret_cast<const Pack<T, width>*>(x + offset_of(at, in_y, in_x, p.in, p.channels));
#pragma unroll
        for (int j = 0; j < width; ++j) {
          const C value = convert<C>(values.value[j]);
          if (none || value > best[j] || value != value) {
            best[j] = value;
            winner.value[j] = static_cast<std::uint8_t>(ky * p.kernel.x + kx);
          }
        }
        none = false;
      }
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(best[j]);
    reinterpret_cast<Pack<T, width>*>(y)[i] = result;
    if (winners) reinterpret_cast<Pack<std::uint8_t, width>*>(winners)[i] = winner;
  }
}

// The places along one axis whose windows see the pixel: first … last.
__device__ void places_that_see(std::int64_t pixel, std::int64_t kernel, std::int64_t stride,
                                std::int64_t padding, std::int64_t dilation, std::int64_t places,
                                std::int64_t& first, std::int64_t& last) {
  const std::int64_t reach = dilation * (kernel - 1), low = pixel + padding - reach;
  first = low <= 0 ? 0 : (low + stride - 1) / stride;
  last = min((pixel + padding) / stride, places - 1);
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    greatest_gradient(PoolPlan p, std::int64_t count, T* __restrict__ dx, const T* __restrict__ dy,
                      const std::uint8_t* __restrict__ winners) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Place at = place_of(i, packs, width, p.in);
    std::int64_t y0, y1, x0, x1;
    places_that_see(at.y, p.kernel.y, p.window.stride.y, p.window.padding.y, p.window.dilation.y, p.out.y, y0,
                    y1);
    places_that_see(at.x, p.kernel.x, p.window.stride.x, p.window.padding.x, p.window.dilation.x, p.out.x, x0,
                    x1);
    C sum[width] = {};
    for (std::int64_t y = y0; y <= y1; ++y) {
      const std::int64_t reach_y = at.y + p.window.padding.y - y * p.window.stride.y;
      if (reach_y % p.window.dilation.y != 0) continue;
      for (std::int64_t x = x0; x <= x1; ++x) {
        const std::int64_t reach_x = at.x + p.window.padding.x - x * p.window.stride.x;
        if (reach_x % p.window.dilation.x != 0) continue;
        const auto mine = static_cast<std::uint8_t>(reach_y / p.window.dilation.y * p.kernel.x +
                                                    reach_x / p.window.dilation.x);
        const std::int64_t from = offset_of(at, y, x, p.out, p.channels);
        const auto won = *reinterpret_cast<const Pack<std::uint8_t, width>*>(winners + from);
        const auto gradient = *reinterpret_cast<const Pack<T, width>*>(dy + from);
#pragma unroll
        for (int j = 0; j < width; ++j)
          if (won.value[j] == mine) sum[j] += convert<C>(gradient.value[j]);
      }
    }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(sum[j]);
    reinterpret_cast<Pack<T, width>*>(dx)[i] = result;
  }
}

// The rows (or columns) that place `at` covers, and what their sum is divided by.
struct Covered {
  std::int64_t begin, end, divisor;
};

__device__ Covered covered(bool adaptive, std::int64_t at, std::int64_t size, std::int64_t places,
                           std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (adaptive) {
    const std::int64_t begin = at * size / places, end = ((at + 1) * size + places - 1) / places;
    return {begin, end, end - begin};
  }
  // As PyTorch: a window that reaches beyond the padding (it cannot here) would be divided by less.
  const std::int64_t begin = at * stride - padding;
  return {max(begin, std::int64_t{0}), min(begin + kernel, size), kernel};
}

template <int width, class T>
__global__ void __launch_bounds__(threads)
    mean(PoolPlan p, bool adaptive, std::int64_t count, T* __restrict__ y, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Place at = place_of(i, packs, width, p.out);
    const Covered rows =
        covered(adaptive, at.y, p.in.y, p.out.y, p.kernel.y, p.window.stride.y, p.window.padding.y);
    const Covered columns =
        covered(adaptive, at.x, p.in.x, p.out.x, p.kernel.x, p.window.stride.x, p.window.padding.x);
    C sum[width] = {};
    for (std::int64_t in_y = rows.begin; in_y < rows.end; ++in_y)
      for (std::int64_t in_x = columns.begin; in_x < columns.end; ++in_x) {
        const auto values =
            *reinterpret_cast<const Pack<T, width>*>(x + offset_of(at, in_y, in_x, p.in, p.channels));
#pragma unroll
        for (int j = 0; j < width; ++j) sum[j] += convert<C>(values.value[j]);
      }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j)
      result.value[j] = convert<T>(sum[j] / static_cast<C>(rows.divisor * columns.divisor));
    reinterpret_cast<Pack<T, width>*>(y)[i] = result;
  }
}

template <int width, class T>
__global__ void __launch_bounds__(threads) mean_gradient(PoolPlan p, bool adaptive, std::int64_t count,
                                                         T* __restrict__ dx, const T* __restrict__ dy) {
  using C = ComputeType<T>;
  const std::int64_t packs = p.channels / width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Place at = place_of(i, packs, width, p.in);
    std::int64_t y0, y1, x0, x1;
    if (adaptive) {
      y0 = at.y * p.out.y / p.in.y, y1 = ((at.y + 1) * p.out.y - 1) / p.in.y;
      x0 = at.x * p.out.x / p.in.x, x1 = ((at.x + 1) * p.out.x - 1) / p.in.x;
    } else {
      places_that_see(at.y, p.kernel.y, p.window.stride.y, p.window.padding.y, 1, p.out.y, y0, y1);
      places_that_see(at.x, p.kernel.x, p.window.stride.x, p.window.padding.x, 1, p.out.x, x0, x1);
    }
    C sum[width] = {};
    for (std::int64_t y = y0; y <= y1; ++y)
      for (std::int64_t x = x0; x <= x1; ++x) {
        const Covered rows =
            covered(adaptive, y, p.in.y, p.out.y, p.kernel.y, p.window.stride.y, p.window.padding.y);
        const Covered columns =
            covered(adaptive, x, p.in.x, p.out.x, p.kernel.x, p.window.stride.x, p.window.padding.x);
        const auto share = C{1} / static_cast<C>(rows.divisor * columns.divisor);
        const auto gradient =
            *reinterpret_cast<const Pack<T, width>*>(dy + offset_of(at, y, x, p.out, p.channels));
#pragma unroll
        for (int j = 0; j < width; ++j) sum[j] += share * convert<C>(gradient.value[j]);
      }
    Pack<T, width> result;
#pragma unroll
    for (int j = 0; j < width; ++j) result.value[j] = convert<T>(sum[j]);
    reinterpret_cast<Pack<T, width>*>(dx)[i] = result;
  }
}

// f.operator()<T, width>(how many packs an image of `size` has).
template <class F>
void on_packs(const PoolPlan& plan, YX size, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "pool2d", [&]<class T>() {
    const std::int64_t count = plan.images * size.y * size.x * plan.channels;
    if (plan.channels % widest<T> == 0)
      f.template operator()<T, widest<T>>(count / widest<T>);
    else
      f.template operator()<T, 1>(count);
  });
  check_launch("pool2d");
}

}  // namespace

template <>
void max_pool2d_kernel<Backend::cuda>(const PoolPlan& plan, std::byte* y, std::uint8_t* winners,
                                      const std::byte* x, StreamView stream) {
  on_packs(plan, plan.out, [&]<class T, int width>(std::int64_t count) {
    greatest<width, T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, count, reinterpret_cast<T*>(y), winners, reinterpret_cast<const T*>(x));
  });
}

template <>
void max_pool2d_gradient_kernel<Backend::cuda>(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                               const std::uint8_t* winners, StreamView stream) {
  on_packs(plan, plan.in, [&]<class T, int width>(std::int64_t count) {
    greatest_gradient<width, T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, count, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy), winners);
  });
}

template <>
void avg_pool2d_kernel<Backend::cuda>(const PoolPlan& plan, bool adaptive, std::byte* y, const std::byte* x,
                                      StreamView stream) {
  on_packs(plan, plan.out, [&]<class T, int width>(std::int64_t count) {
    mean<width, T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, adaptive, count, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x));
  });
}

template <>
void avg_pool2d_gradient_kernel<Backend::cuda>(const PoolPlan& plan, bool adaptive, std::byte* dx,
                                               const std::byte* dy, StreamView stream) {
  on_packs(plan, plan.in, [&]<class T, int width>(std::int64_t count) {
    mean_gradient<width, T><<<blocks_for(count, threads), threads, 0, cuda_stream(stream)>>>(
        plan, adaptive, count, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy));
  });
}

}  // namespace tandem
