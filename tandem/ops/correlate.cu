// Correlation on CUDA.
// `cuda-simple`: one block per row, one thread per column.
// `cuda`, kernels up to 9×9: a thread computes a few adjacent columns of a strip of rows, from top to bottom.
// Every input row is prefetched once to shared memory, several rows in advance, and the inner loop is
// multiply-adds on registers. Larger kernels: weights in shared memory, the image through the cache.
#include <algorithm>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/correlate_kernel.h"
#include "tandem/ops/pack.cuh"

namespace tandem::detail {
namespace {

template <class T>
__global__ void correlate_row_per_block(CorrelateShape s, const T* image, const T* kernel, T* out) {
  for (std::int64_t y = blockIdx.x; y < s.height; y += gridDim.x)
    for (std::int64_t x = threadIdx.x; x < s.width; x += blockDim.x)
      out[y * s.width + x] = correlate_pixel(s, image, kernel, y, x);
}

// Hides the origin of a value, so that the compiler keeps it in a register instead of loading it again.
__device__ void keep_in_register(float& value) {
  asm volatile("" : "+f"(value));
}
__device__ void keep_in_register(double& value) {
  asm volatile("" : "+d"(value));
}

// Starts an asynchronous copy of `bytes` (4, 8 or 16) to shared memory; only the first `present` are read,
// the rest are zeros.
template <int bytes>
__device__ void copy_async(unsigned to, const void* from, int present) {
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes),
                 "r"(present)
                 : "memory");
}

constexpr int margin = 4;  // columns a strip reads beyond each side: the largest radius

// Chosen by measurement (bench/results).
constexpr int strip_warps = 4;  // per block, one strip each
constexpr int ring = 4;         // input rows being copied or in use

// Input rows are processed in rounds of 2·radius + 1, after which the sums are back in their first registers.
__host__ __device__ constexpr int rows_of_strip(int radius, int rounds) {
  return rounds * (2 * radius + 1) - 2 * radius;
}

// One warp per strip, processed from top to bottom. Input rows pass through a ring buffer in shared memory,
// with `ring − 1` copies in flight. Every row is read once and added to each output row it contributes to;
// the weights and one sum per kernel row stay in registers.
template <class T, int radius, bool aligned>
__global__ void __launch_bounds__(32 * strip_warps)
    correlate_strips(CorrelateShape s, int rounds, const T* __restrict__ image, const T* __restrict__ kernel,
                     T* __restrict__ out) {
  constexpr int size = 2 * radius + 1, columns = 16 / sizeof(T);
  constexpr int strip_width = 32 * columns;
  constexpr int row_width = strip_width + 2 * margin, pieces = 2;
  __shared__ alignas(16) T rows[strip_warps][ring][row_width];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int strip_rows = rows_of_strip(radius, rounds);
  const int height = static_cast<int>(s.height), width = static_cast<int>(s.width);
  const int strip_x = (blockIdx.x * strip_warps + warp) * strip_width, x = strip_x + lane * columns;
  if (strip_x >= width) return;

  // A row of the ring is filled in two pieces, the second one only by the first lanes. The number of bytes of
  // each that are inside the image:
  int present[pieces][aligned ? 1 : columns];
#pragma unroll
  for (int p = 0; p < pieces; ++p)
#pragma unroll
    for (int e = 0; e < (aligned ? 1 : columns); ++e) {
      const int from_x = x - margin + p * strip_width + e;
      present[p][e] = from_x >= 0 && from_x < width ? (aligned ? 16 : static_cast<int>(sizeof(T))) : 0;
    }
  const bool fills_second = strip_width + lane * columns < row_width;

  T weight[size][size];
#pragma unroll
  for (int i = 0; i < size; ++i)
#pragma unroll
    for (int j = 0; j < size; ++j) {
      const std::int64_t from_i = i - radius + s.anchor_y, from_j = j - radius + s.anchor_x;
      const bool exists = from_i >= 0 && from_i < s.kernel_height && from_j >= 0 && from_j < s.kernel_width;
      weight[i][j] = exists ? kernel[s.weight_index(from_i, from_j)] : T{0};
      keep_in_register(weight[i][j]);
    }

  const T* own = &rows[warp][0][lane * columns];
  const auto to_ring = static_cast<unsigned>(__cvta_generic_to_shared(own));
  for (int y_begin = blockIdx.y * strip_rows; y_begin < height; y_begin += gridDim.y * strip_rows) {
    const T* next = image + std::int64_t{y_begin - radius} * width + x - margin;
    int next_y = y_begin - radius;
    unsigned next_slot = 0;
    const auto start_row = [&] {
      const unsigned to = to_ring + next_slot * (row_width * sizeof(T));
      const bool exists = static_cast<unsigned>(next_y) < static_cast<unsigned>(height);
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        if (p == 1 && !fills_second) continue;
#pragma unroll
        for (int e = 0; e < (aligned ? 1 : columns); ++e)
          copy_async<aligned ? 16 : sizeof(T)>(to + (p * strip_width + e) * sizeof(T),
                                               next + p * strip_width + e, exists ? present[p][e] : 0);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      next += width;
      ++next_y;
      next_slot = (next_slot + 1) % ring;
    };
    __syncwarp();
#pragma unroll
    for (int r = 0; r < ring - 1; ++r) start_row();

    // In turn r of a round, sum[(r + k) % size] is that of the output row 2·radius − k rows above the input
    // row.
    T sum[size][columns] = {};
    T* target = out + std::int64_t{y_begin - 2 * radius} * width + x;
    int target_y = y_begin - 2 * radius;
    unsigned slot = 0;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
      for (int turn = 0; turn < size; ++turn) {
        asm volatile("cp.async.wait_group %0;" ::"n"(ring - 2) : "memory");
        __syncwarp();
        start_row();
        T pixel[columns + 2 * margin];
#pragma unroll
        for (int c = 0; c < columns + 2 * margin; c += columns) {
          const Pack<T, columns> loaded = load_pack<columns>(own + slot * row_width + c);
#pragma unroll
          for (int i = 0; i < columns; ++i) pixel[c + i] = loaded.value[i];
        }
        slot = (slot + 1) % ring;
#pragma unroll
        for (int k = 0; k < size; ++k)
#pragma unroll
          for (int j = 0; j < size; ++j)
#pragma unroll
            for (int c = 0; c < columns; ++c)
              sum[(turn + k) % size][c] += weight[size - 1 - k][j] * pixel[c + margin - radius + j];
        T(&finished)[columns] = sum[turn];
        if (target_y >= y_begin && target_y < height) {
          if constexpr (aligned) {
            Pack<T, columns> result;
#pragma unroll
            for (int c = 0; c < columns; ++c) result.value[c] = finished[c];
            if (x < width) store_pack(target, result);
          } else {
#pragma unroll
            for (int c = 0; c < columns; ++c)
              if (x + c < width) target[c] = finished[c];
          }
        }
        target += width;
        ++target_y;
#pragma unroll
        for (int c = 0; c < columns; ++c) finished[c] = 0;
      }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
}

template <class T, int radius>
void launch_strips(const CorrelateShape& s, const T* image, const T* kernel, T* out, StreamView stream) {
  constexpr int columns = 16 / sizeof(T), size = 2 * radius + 1;
  // Long strips read fewer rows twice; short ones give enough warps for a small image.
  const std::int64_t across = (s.width + 32 * columns - 1) / (32 * columns);
  const bool small = across * s.height / 64 < 8 * multiprocessor_count(stream.device);
  const int rounds = ((small ? 8 : 64) + 2 * radius + size - 1) / size;
  const std::int64_t strip_rows = rows_of_strip(radius, rounds);
  const dim3 blocks(
      static_cast<unsigned>((across + strip_warps - 1) / strip_warps),
      static_cast<unsigned>(std::min<std::int64_t>((s.height + strip_rows - 1) / strip_rows, 65535)));
  const bool aligned = s.width % columns == 0 && is_aligned<columns>(image) && is_aligned<columns>(out);
  const auto strips = aligned ? correlate_strips<T, radius, true> : correlate_strips<T, radius, false>;
  strips<<<blocks, 32 * strip_warps, 0, cuda_stream(stream)>>>(s, rounds, image, kernel, out);
}

constexpr int large_threads = 256, large_chunk = 1024;

// A kernel of any size: one thread per pixel, with the weights staged through shared memory in chunks.
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
    const int chunk = static_cast<int>(min(std::int64_t{large_chunk}, count - first));
    __syncthreads();
    for (int w = threadIdx.x; w < chunk; w += large_threads)
      weight[w] = kernel[s.flipped ? count - 1 - first - w : first + w];
    __syncthreads();
    if (pixel >= pixels) continue;
    std::int64_t i = first / s.kernel_width, j = first % s.kernel_width;
    for (int w = 0; w < chunk; ++w) {
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
void launch_tuned(const CorrelateShape& s, const T* image, const T* kernel, T* out, StreamView stream) {
  const std::int64_t radius =
      std::max({s.anchor_y, s.anchor_x, s.kernel_height - 1 - s.anchor_y, s.kernel_width - 1 - s.anchor_x});
  if (std::max(s.height, s.width) < (std::int64_t{1} << 30)) {  // strips use 32-bit row and column indices
    if (radius <= 1) return launch_strips<T, 1>(s, image, kernel, out, stream);
    if (radius == 2) return launch_strips<T, 2>(s, image, kernel, out, stream);
    if (radius == 3) return launch_strips<T, 3>(s, image, kernel, out, stream);
    if (radius == 4) return launch_strips<T, 4>(s, image, kernel, out, stream);
  }
  const auto blocks = static_cast<unsigned>((s.height * s.width + large_threads - 1) / large_threads);
  correlate_large<<<blocks, large_threads, 0, cuda_stream(stream)>>>(s, image, kernel, out);
}

constexpr int weights_threads = 256;

// One block per weight: its threads split the pixels, then sum in a fixed order.
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
                 reinterpret_cast<T*>(out), stream);
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

}  // namespace tandem::detail
