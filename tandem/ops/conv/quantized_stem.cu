#include "tandem/ops/conv/quantized_stem.cuh"

#include <algorithm>
#include <cstdint>

#include "tandem/core/convert.h"
#include "tandem/ops/conv/quantized_epilogue.cuh"
#include "tandem/ops/hopper.cuh"

namespace tandem::detail {
namespace {

// The convolution as a product: rows are 64 adjacent pixels of a line of the result, columns are the filters,
// and the sum goes over 7 lines of 8 pixels of 4 channels, of which the last pixel and the last channel have
// weights of zero. In shared memory a pixel has 8 bytes. So the pixels that a result needs of a line are 64
// bytes in sequence, those of the next result begin 16 bytes later, and the image itself is a matrix for
// wgmma, whose rows overlap. Stored pixels and weights are whole numbers that bf16 has, and their sums stay
// below 2²⁴, so that f32 has them too: the products are those of integers.
constexpr int kernel = 7, filters = 64, max_channels = 4, pixel_bytes = 8;
constexpr int planes = kernel * 4, plane_bytes = filters * 16;  // a plane: 16 bytes of the sum of all filters
constexpr int weight_bytes = planes * plane_bytes;
constexpr int tile = 64;                      // pixels
[[maybe_unused]] constexpr int groups = 2;    // warpgroups
constexpr int threads = 128 * groups;         // warpgroups
constexpr int in_lines = 16, conv_lines = 3;  // kept in shared memory
constexpr int numbers_pitch = filters / 4 + 4;
constexpr int max_shared_bytes = 227 * 1024;
[[maybe_unused]] constexpr int prefetched = 4;  // pixels per thread

struct Problem {
  int images, channels;
  int in_y, in_x, conv_y, conv_x, out_y, out_x;
  int tiles;             // along a line
  int bands, band_rows;  // an image's pooled lines in parts
  const float *scale, *bias;
  float inverse_input, zero;  // of the images
  QuantizedEpilogue epilogue;
};

// What lies where in shared memory, in bytes.
struct Places {
  int in, conv, scales, shifts, end;
  int in_pitch, conv_pitch;
};

__host__ __device__ Places places_of(const Problem& p) {
  Places at{};
  at.in_pitch = (2 * tile * p.tiles + 8) * pixel_bytes;
  at.conv_pitch = (2 * p.out_x + 1) * filters;
  at.in = weight_bytes;
  at.conv = at.in + in_lines * at.in_pitch;
  at.scales = at.conv + conv_lines * at.conv_pitch;
  at.shifts = at.scales + 4 * numbers_pitch * 4;
  at.end = at.shifts + 4 * numbers_pitch * 4;
  return at;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ void multiply(float (&sum)[32], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1, 1, 1, 0, 0;"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
        "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]),
        "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]),
        "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31])
      : "l"(a), "l"(b));
}

__device__ int in_slot(int line) {
  return (line + in_lines) % in_lines;
}
__device__ int conv_slot(int line) {
  return (line + conv_lines) % conv_lines;
}

template <class T>
struct Pixel {
  T values[max_channels];
};

// Zeros outside of the image.
template <class T>
__device__ Pixel<T> load_pixel(const Problem& p, const T* image, int line, int column) {
  Pixel<T> pixel{};
  if (line >= 0 && line < p.in_y) {
    const T* const from = image + std::int64_t{line * p.in_x + column} * p.channels;
#pragma unroll
    for (int c = 0; c < max_channels; ++c)
      if (c < p.channels) pixel.values[c] = from[c];
  }
  return pixel;
}

// Two whole numbers from 0 to 255 as bf16: the upper halves of their f32.
__device__ std::uint32_t bf16_pair(float low, float high) {
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

template <class T>
__device__ void store_pixel(const Problem& p, const Places& at, unsigned char* memory, int line, int column,
                            const Pixel<T>& pixel) {
  constexpr int padding = kernel / 2;
  float stored[max_channels];
#pragma unroll
  for (int c = 0; c < max_channels; ++c)
    stored[c] = quantized_value(convert<float>(pixel.values[c]), p.inverse_input, p.zero);
  *reinterpret_cast<uint2*>(memory + at.in + in_slot(line) * at.in_pitch +
                            (column + padding) * pixel_bytes) = {bf16_pair(stored[0], stored[1]),
                                                                 bf16_pair(stored[2], stored[3])};
}

// The sums of one tile of a line of the convolution.
__device__ void start_products(const Places& at, std::uint32_t memory, int line, int first,
                               float (&sum)[32]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) sum[i] = 0;
  wgmma_fence();
#pragma unroll
  for (int ky = 0; ky < kernel; ++ky) {
    const int in_line = 2 * line - kernel / 2 + ky;
    const std::uint32_t pixels =
        memory + static_cast<std::uint32_t>(at.in + in_slot(in_line) * at.in_pitch + first * 2 * pixel_bytes);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      multiply(sum, plain_descriptor(pixels + 32 * half, 16, 128),
               plain_descriptor(memory + (ky * 4 + 2 * half) * plane_bytes, plane_bytes, 128));
  }
  wgmma_commit();
}

// Writes the rounded values of a tile. Lines behind the last one are zero, which no maximum is below.
__device__ void finish(const Problem& p, const Places& at, unsigned char* memory, int line, int first,
                       const float (&sum)[32], int thread) {
  const int quarter = thread % 4;
  const auto* const scales = reinterpret_cast<const float*>(memory + at.scales) + quarter * numbers_pitch;
  const auto* const shifts = reinterpret_cast<const float*>(memory + at.shifts) + quarter * numbers_pitch;
#pragma unroll
  for (int below = 0; below < 2; ++below) {
    const int column = first + thread / 32 * 16 + thread % 32 / 4 + 8 * below;
    std::uint32_t results[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float4 scale = *reinterpret_cast<const float4*>(scales + w * 4),
                   shift = *reinterpret_cast<const float4*>(shifts + w * 4);
      const float scale_of[4] = {scale.x, scale.y, scale.z, scale.w},
                  shift_of[4] = {shift.x, shift.y, shift.z, shift.w};
      const int even = w * 8 + below * 2, odd = even + 4;
      const float sums[4] = {sum[even], sum[even + 1], sum[odd], sum[odd + 1]};
      results[w] = saturated_bytes(sums, scale_of, shift_of);
    }
    if (column >= p.conv_x) continue;
    const bool exists = line < p.conv_y;
    auto* const to =
        memory + at.conv + conv_slot(line) * at.conv_pitch + (column + 1) * filters + quarter * 16;
    *reinterpret_cast<uint4*>(to) =
        exists ? uint4{results[0], results[1], results[2], results[3]} : uint4{0, 0, 0, 0};
  }
}

__device__ uint4 max_of(uint4 a, uint4 b) {
  return {__vmaxu4(a.x, b.x), __vmaxu4(a.y, b.y), __vmaxu4(a.z, b.z), __vmaxu4(a.w, b.w)};
}

__device__ void pool_line(const Problem& p, const Places& at, const unsigned char* memory, int row,
                          std::uint8_t* to) {
  for (int i = static_cast<int>(threadIdx.x); i < p.out_x * 4; i += threads) {
    uint4 best{};
#pragma unroll
    for (int ky = 0; ky < 3; ++ky) {
      const auto* const from = reinterpret_cast<const uint4*>(
          memory + at.conv + conv_slot(2 * row - 1 + ky) * at.conv_pitch + i / 4 * 2 * filters + i % 4 * 16);
#pragma unroll
      for (int kx = 0; kx < 3; ++kx) best = max_of(best, from[kx * (filters / 16)]);
    }
    reinterpret_cast<uint4*>(to)[i] = best;
  }
}

#endif

template <class T>
__global__ void __launch_bounds__(threads, 2)
    convolve_and_pool(const __grid_constant__ Problem p, std::uint8_t* __restrict__ y,
                      const T* __restrict__ x, const uint4* __restrict__ weight) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  const Places at = places_of(p);
  const std::uint32_t address = shared_address(memory);
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128, group_thread = thread % 128;
  for (int i = thread; i < weight_bytes / 16; i += threads) reinterpret_cast<uint4*>(memory)[i] = weight[i];
  const std::uint32_t padding = bf16_pair(p.zero, p.zero);
  for (int i = thread; i < (at.conv - at.in) / 16; i += threads)
    reinterpret_cast<uint4*>(memory + at.in)[i] = {padding, padding, padding, padding};
  for (int i = thread; i < (at.scales - at.conv) / 16; i += threads)
    reinterpret_cast<uint4*>(memory + at.conv)[i] = {};
  allow_next_kernel();
  if (thread < filters) {
    const ColumnNumbers numbers = column_numbers(p.epilogue, p.scale[thread], p.bias[thread]);
    const int place = thread / 16 * numbers_pitch + thread % 16;
    reinterpret_cast<float*>(memory + at.scales)[place] = numbers.scale / 256;
    reinterpret_cast<float*>(memory + at.shifts)[place] = numbers.shift / 256;
  }
  int ahead_line[prefetched], ahead_column[prefetched];  // of the pixels that this thread fetches early
#pragma unroll
  for (int k = 0; k < prefetched; ++k) {
    ahead_line[k] = (thread + k * threads) / p.in_x;
    ahead_column[k] = (thread + k * threads) % p.in_x;
  }

  for (int unit = static_cast<int>(blockIdx.x); unit < p.images * p.bands;
       unit += static_cast<int>(gridDim.x)) {
    const int image_index = unit / p.bands, begin = unit % p.bands * p.band_rows;
    const int end = min(begin + p.band_rows, p.out_y);
    if (begin >= end) continue;
    const T* const image = x + std::int64_t{image_index} * p.in_y * p.in_x * p.channels;
    std::uint8_t* const pooled = y + std::int64_t{image_index} * p.out_y * p.out_x * filters;
    __syncthreads();  // nobody reads what the last unit left

    // Pooled line r is of lines 2r − 1 to 2r + 1 of the convolution; its line c is of lines 2c − 3 to 2c + 3
    // of the image.
    const int first_line = 4 * begin - 5, lines = 11;
    for (int i = thread; i < lines * p.in_x; i += threads) {
      const int line = first_line + i / p.in_x, column = i % p.in_x;
      store_pixel(p, at, memory, line, column, load_pixel(p, image, line, column));
    }
    if (begin == 0)
      for (int i = thread; i < at.conv_pitch / 16; i += threads)
        reinterpret_cast<uint4*>(memory + at.conv + conv_slot(-1) * at.conv_pitch)[i] = {};
    publish_shared_writes();
    __syncthreads();
    float sum[32], other_sum[32];
    if (begin > 0)
      for (int t = group; t < p.tiles; t += groups) {
        start_products(at, address, 2 * begin - 1, t * tile, sum);
        wgmma_wait<0>();
        finish(p, at, memory, 2 * begin - 1, t * tile, sum, group_thread);
      }

    for (int row = begin; row < end; ++row) {
      const int next_line = 4 * row + 6, next_pixels = row + 1 < end ? 4 * p.in_x : 0;
      Pixel<T> next[prefetched] = {};
#pragma unroll
      for (int k = 0; k < prefetched; ++k)
        if (thread + k * threads < next_pixels)
          next[k] = load_pixel(p, image, next_line + ahead_line[k], ahead_column[k]);
      // Two lines of `tiles` tiles; each group has every second one, two at a time. Where their number is
      // odd, the last one is multiplied twice.
      for (int k = 0; k < p.tiles; k += 2) {
        const int item = group + k * groups, other_item = k + 1 < p.tiles ? item + groups : item;
        const int line = 2 * row + item / p.tiles, first = item % p.tiles * tile;
        const int other_line = 2 * row + other_item / p.tiles, other_first = other_item % p.tiles * tile;
        start_products(at, address, line, first, sum);
        start_products(at, address, other_line, other_first, other_sum);
        wgmma_wait<1>();
        if (k == 0) __syncthreads();  // the lines that are overwritten have been pooled
        finish(p, at, memory, line, first, sum, group_thread);
        wgmma_wait<0>();
        if (k + 1 < p.tiles) finish(p, at, memory, other_line, other_first, other_sum, group_thread);
      }
#pragma unroll
      for (int k = 0; k < prefetched; ++k)
        if (thread + k * threads < next_pixels)
          store_pixel(p, at, memory, next_line + ahead_line[k], ahead_column[k], next[k]);
      for (int i = thread + prefetched * threads; i < next_pixels; i += threads)
        store_pixel(p, at, memory, next_line + i / p.in_x, i % p.in_x,
                    load_pixel(p, image, next_line + i / p.in_x, i % p.in_x));
      publish_shared_writes();
      __syncthreads();
      pool_line(p, at, memory, row, pooled + std::int64_t{row} * p.out_x * filters);
    }
  }
#endif
}

template <class T>
void launch(const Problem& p, int multiprocessors, const QuantizedTask& task, const T* images,
            StreamView stream) {
  const int bytes = places_of(p).end;
  cuda_check(cudaFuncSetAttribute(convolve_and_pool<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute");
  const int blocks = std::min(p.images * p.bands, 2 * multiprocessors);
  convolve_and_pool<T>
      <<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), cuda_stream(stream)>>>(
          p, reinterpret_cast<std::uint8_t*>(task.y), images,
          reinterpret_cast<const uint4*>(task.conv.packed.bytes()));
  check_launch("quantized_stem");
}

}  // namespace

bool is_quantized_stem_applicable(const Shape& weight, const Conv2dOptions& options, Device device) {
  const Window& window = options.window;
  return device.is_cuda() && is_hopper(device) && weight[0] == filters && weight[1] == kernel &&
         weight[2] == kernel && weight[3] >= 1 && weight[3] <= max_channels && window.stride == YX{2, 2} &&
         window.padding == YX{3, 3} && window.dilation == YX{1, 1};
}

std::vector<BFloat16> order_stem_weight(const Shape& shape, const std::int8_t* weight) {
  const std::int64_t channels = shape[3];
  std::vector<BFloat16> ordered(weight_bytes / sizeof(BFloat16), BFloat16(0.0f));
  for (int ky = 0; ky < kernel; ++ky)
    for (int kx = 0; kx < kernel; ++kx)
      for (int n = 0; n < filters; ++n)
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t plane = ky * 4 + kx / 2;
          ordered[static_cast<std::size_t>((plane * filters + n) * 8 + kx % 2 * 4 + c)] = convert<BFloat16>(
              weight[((filter_of_column(n, filters) * kernel + ky) * kernel + kx) * channels + c]);
        }
  return ordered;
}

bool fused_quantized_stem(const QuantizedTask& task, const FloatingImages& images, const PoolPlan& pool,
                          StreamView stream) {
  const Conv2dPlan& plan = task.plan;
  const QuantizedConv2d& conv = task.conv;
  if (!is_quantized_stem_applicable(conv.weight_shape, conv.options, stream.device)) return false;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const bool is_usual = pool.kernel == YX{3, 3} && pool.window.stride == YX{2, 2} &&
                        pool.window.padding == YX{1, 1} && pool.window.dilation == YX{1, 1};
  if (!is_usual || plan.in.x > 1024 || plan.in.y > (1 << 16) || plan.images > (1 << 20)) return false;
  const int multiprocessors = multiprocessor_count(stream.device);
  Problem p{.images = narrow(plan.images),
            .channels = narrow(plan.channels),
            .in_y = narrow(plan.in.y),
            .in_x = narrow(plan.in.x),
            .conv_y = narrow(plan.out.y),
            .conv_x = narrow(plan.out.x),
            .out_y = narrow(pool.out.y),
            .out_x = narrow(pool.out.x),
            .tiles = narrow((plan.out.x + tile - 1) / tile),
            .bands = 1,
            .band_rows = 1,
            .scale = conv.scale.data<float>(),
            .bias = conv.bias.data<float>(),
            .inverse_input = 1 / conv.input.scale,
            .zero = conv.input.zero,
            .epilogue = epilogue_of(task)};
  if (p.epilogue.has_min || places_of(p).end > max_shared_bytes) return false;
  const int blocks = 2 * multiprocessors;
  const int bands = std::clamp((blocks + p.images - 1) / p.images, 1, p.out_y);
  p.band_rows = (p.out_y + bands - 1) / bands;
  p.bands = (p.out_y + p.band_rows - 1) / p.band_rows;
  if (images.dtype == DType::bf16)
    launch(p, multiprocessors, task, reinterpret_cast<const BFloat16*>(images.data), stream);
  else
    launch(p, multiprocessors, task, reinterpret_cast<const float*>(images.data), stream);
  return true;
}

}  // namespace tandem::detail
