// Correlation on CUDA.
// `cuda-simple`: a block a row, a thread a column.
// `cuda`, kernels up to 9x9: a thread owns a few neighbouring columns and walks down a strip of rows. It
// keeps all weights and one partial sum per kernel row in registers; each input row is read once and added to
// every output row it touches, so device memory is read about once and the loop is multiply-adds alone. Rows
// are loaded `ahead` rows before they are used, to keep enough bytes in flight. Larger kernels: weights in
// shared memory, image through the cache.
#include <algorithm>
#include <cstdint>

#include "tandem/device/cuda.h"
#include "tandem/ops/correlate.h"

namespace tandem {
namespace {

template <class T>
__global__ void correlate_row_per_block(CorrelateShape s, const T* image, const T* kernel, T* out) {
  for (std::int64_t y = blockIdx.x; y < s.height; y += gridDim.x)
    for (std::int64_t x = threadIdx.x; x < s.width; x += blockDim.x) {
      T sum = 0;
      for (std::int64_t i = 0; i < s.kernel_height; ++i)
        for (std::int64_t j = 0; j < s.kernel_width; ++j) {
          const std::int64_t from_y = y + i - s.anchor_y, from_x = x + j - s.anchor_x;
          if (from_y >= 0 && from_y < s.height && from_x >= 0 && from_x < s.width)
            sum += kernel[s.weight_index(i, j)] * image[from_y * s.width + from_x];
        }
      out[y * s.width + x] = sum;
    }
}

template <class T>
struct alignas(16) Quad {
  static constexpr int count = 16 / sizeof(T);
  T value[count];
};

// How a strip is walked; chosen by measurement (bench/results).
template <class T, int radius>
struct Strip {
  static constexpr int threads = 128;
  static constexpr int columns = Quad<T>::count;  // a thread's
  static constexpr int rows = radius <= 2 ? 32 : 64;
  static constexpr int ahead = radius <= 2 ? 2 : 1;
  static constexpr int unroll = 1;
};

// The columns x − margin … x + columns − 1 + margin of one input row, zero outside the image.
template <class T, int columns, int margin>
struct Window {
  static constexpr int count = columns + 2 * margin;
  T value[count];

  __device__ void load(const T* row, std::int64_t x, std::int64_t width, bool row_exists, bool inside) {
    constexpr int per_quad = Quad<T>::count;
    if (row_exists && inside) {
#pragma unroll
      for (int q = 0; q < count / per_quad; ++q) {
        const auto quad = *reinterpret_cast<const Quad<T>*>(row + x - margin + q * per_quad);
#pragma unroll
        for (int e = 0; e < per_quad; ++e) value[q * per_quad + e] = quad.value[e];
      }
    } else {
#pragma unroll
      for (int e = 0; e < count; ++e) {
        const std::int64_t from = x - margin + e;
        value[e] = row_exists && from >= 0 && from < width ? row[from] : T{0};
      }
    }
  }
};

template <class T, int radius, class Plan>
__global__ void __launch_bounds__(Plan::threads)
    correlate_strips(CorrelateShape s, bool aligned, const T* __restrict__ image,
                     const T* __restrict__ kernel, T* __restrict__ out) {
  constexpr int size = 2 * radius + 1, columns = Plan::columns, ahead = Plan::ahead, margin = 4;
  using RowWindow = Window<T, columns, margin>;
  const std::int64_t x = (std::int64_t{blockIdx.x} * Plan::threads + threadIdx.x) * columns;
  if (x >= s.width) return;
  const bool inside = aligned && x >= margin && x + columns + margin <= s.width;

  T weight[size][size];
#pragma unroll
  for (int i = 0; i < size; ++i)
#pragma unroll
    for (int j = 0; j < size; ++j) {
      const std::int64_t from_i = i - radius + s.anchor_y, from_j = j - radius + s.anchor_x;
      const bool exists = from_i >= 0 && from_i < s.kernel_height && from_j >= 0 && from_j < s.kernel_width;
      weight[i][j] = exists ? kernel[s.weight_index(from_i, from_j)] : T{0};
    }

  for (std::int64_t y_begin = std::int64_t{blockIdx.y} * Plan::rows; y_begin < s.height;
       y_begin += std::int64_t{gridDim.y} * Plan::rows) {
    const std::int64_t y_end = min(y_begin + Plan::rows, s.height);
    RowWindow window[ahead + 1];
    const auto load = [&](RowWindow& into, std::int64_t y) {
      into.load(image + y * s.width, x, s.width, y >= 0 && y < s.height && y < y_end + radius, inside);
    };
#pragma unroll
    for (int a = 0; a < ahead; ++a) load(window[a], y_begin - radius + a);

    // sum[k] belongs to output row y − radius + k while input row y is added.
    T sum[size][columns] = {};
#pragma unroll Plan::unroll
    for (std::int64_t y = y_begin - radius; y < y_end + radius; ++y) {
      load(window[ahead], y + ahead);
#pragma unroll
      for (int k = 0; k < size; ++k)
#pragma unroll
        for (int j = 0; j < size; ++j)
#pragma unroll
          for (int c = 0; c < columns; ++c)
            sum[k][c] += weight[size - 1 - k][j] * window[0].value[c + margin - radius + j];
      const std::int64_t finished = y - radius;
      if (finished >= y_begin) {
        T* target = out + finished * s.width + x;
        if (aligned) {
          Quad<T> quad;
#pragma unroll
          for (int c = 0; c < columns; ++c) quad.value[c] = sum[0][c];
          *reinterpret_cast<Quad<T>*>(target) = quad;
        } else {
#pragma unroll
          for (int c = 0; c < columns; ++c)
            if (x + c < s.width) target[c] = sum[0][c];
        }
      }
#pragma unroll
      for (int k = 0; k + 1 < size; ++k)
#pragma unroll
        for (int c = 0; c < columns; ++c) sum[k][c] = sum[k + 1][c];
#pragma unroll
      for (int c = 0; c < columns; ++c) sum[size - 1][c] = 0;
#pragma unroll
      for (int a = 0; a < ahead; ++a) window[a] = window[a + 1];
    }
  }
}

template <class T, int radius, class Plan = Strip<T, radius>>
void launch_strips(const CorrelateShape& s, const T* image, const T* kernel, T* out, cudaStream_t stream) {
  const bool aligned = s.width % Plan::columns == 0 && reinterpret_cast<std::uintptr_t>(image) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  const std::int64_t block_columns = Plan::threads * Plan::columns;
  const dim3 blocks(
      static_cast<unsigned>((s.width + block_columns - 1) / block_columns),
      static_cast<unsigned>(std::min<std::int64_t>((s.height + Plan::rows - 1) / Plan::rows, 65535)));
  correlate_strips<T, radius, Plan><<<blocks, Plan::threads, 0, stream>>>(s, aligned, image, kernel, out);
}

constexpr int large_threads = 256, large_chunk = 1024;

// Any kernel: its weights pass through shared memory in chunks; a thread computes one pixel.
template <class T>
__global__ void __launch_bounds__(large_threads)
    correlate_large(CorrelateShape s, const T* __restrict__ image, const T* __restrict__ kernel,
                    T* __restrict__ out) {
  __shared__ T weight[large_chunk];
  const std::int64_t count = s.kernel_height * s.kernel_width, pixels = s.height * s.width;
  const std::int64_t pixel = std::int64_t{blockIdx.x} * large_threads + threadIdx.x;
  const std::int64_t y = pixel / s.width, x = pixel % s.width;
  T sum = 0;
  for (std::int64_t first = 0; first < count; first += large_chunk) {
    const int held = static_cast<int>(min(std::int64_t{large_chunk}, count - first));
    __syncthreads();
    for (int w = threadIdx.x; w < held; w += large_threads)
      weight[w] = kernel[s.turned ? count - 1 - first - w : first + w];
    __syncthreads();
    if (pixel >= pixels) continue;
    std::int64_t i = first / s.kernel_width, j = first % s.kernel_width;
    for (int w = 0; w < held; ++w) {
      const std::int64_t from_y = y + i - s.anchor_y, from_x = x + j - s.anchor_x;
      if (from_y >= 0 && from_y < s.height && from_x >= 0 && from_x < s.width)
        sum += weight[w] * image[from_y * s.width + from_x];
      if (++j == s.kernel_width) {
        j = 0;
        ++i;
      }
    }
  }
  if (pixel < pixels) out[pixel] = sum;
}

template <class T>
void launch_tuned(const CorrelateShape& s, const T* image, const T* kernel, T* out, cudaStream_t stream) {
  const std::int64_t radius =
      std::max({s.anchor_y, s.anchor_x, s.kernel_height - 1 - s.anchor_y, s.kernel_width - 1 - s.anchor_x});
  if (radius <= 1) return launch_strips<T, 1>(s, image, kernel, out, stream);
  if (radius == 2) return launch_strips<T, 2>(s, image, kernel, out, stream);
  if (radius == 3) return launch_strips<T, 3>(s, image, kernel, out, stream);
  if (radius == 4) return launch_strips<T, 4>(s, image, kernel, out, stream);
  const auto blocks = static_cast<unsigned>((s.height * s.width + large_threads - 1) / large_threads);
  correlate_large<<<blocks, large_threads, 0, stream>>>(s, image, kernel, out);
}

constexpr int weights_threads = 256;

// A block a weight: its threads share the pixels, then add up in a fixed order.
template <class T>
__global__ void __launch_bounds__(weights_threads)
    correlate_weights(CorrelateShape s, const T* __restrict__ image, const T* __restrict__ gradient,
                      T* __restrict__ out) {
  __shared__ double partial[weights_threads];
  const std::int64_t shift_y = blockIdx.x / s.kernel_width - s.anchor_y;
  const std::int64_t shift_x = blockIdx.x % s.kernel_width - s.anchor_x;
  double sum = 0;
  for (std::int64_t pixel = threadIdx.x; pixel < s.height * s.width; pixel += weights_threads) {
    const std::int64_t y = pixel / s.width + shift_y, x = pixel % s.width + shift_x;
    if (y >= 0 && y < s.height && x >= 0 && x < s.width)
      sum += static_cast<double>(gradient[pixel]) * static_cast<double>(image[y * s.width + x]);
  }
  partial[threadIdx.x] = sum;
  for (int half = weights_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<T>(partial[0]);
}

using FloatingTypes = TypeList<float, double>;

}  // namespace

template <>
void correlate_kernel<Version::cuda_simple>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                            const std::byte* kernel, std::byte* out, StreamView stream) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(shape.height, 1 << 30));
    const auto threads = static_cast<unsigned>(std::min<std::int64_t>(shape.width, 1024));
    correlate_row_per_block<<<blocks, threads, 0, cuda_stream(stream)>>>(
        shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(kernel),
        reinterpret_cast<T*>(out));
  });
  check_launch("correlate (cuda-simple)");
}

template <>
void correlate_kernel<Version::cuda>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                     const std::byte* kernel, std::byte* out, StreamView stream) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    launch_tuned(shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(kernel),
                 reinterpret_cast<T*>(out), cuda_stream(stream));
  });
  check_launch("correlate (cuda)");
}

template <>
void correlate_weights_kernel<Backend::cuda>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                             const std::byte* gradient, std::byte* out, StreamView stream) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    const auto weights = static_cast<unsigned>(shape.kernel_height * shape.kernel_width);
    correlate_weights<<<weights, weights_threads, 0, cuda_stream(stream)>>>(
        shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(gradient),
        reinterpret_cast<T*>(out));
  });
  check_launch("gradient of correlate");
}

}  // namespace tandem
