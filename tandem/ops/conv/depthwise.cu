#include "tandem/ops/conv/depthwise.cuh"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {
namespace {

constexpr int threads = 128;

// The sizes of one image, which fit 32 bits, and what the grid covers.
struct Sizes {
  int images;
  int channels;
  int in_y, in_x;
  int out_y, out_x;
  int packs;  // of channels
};

// A tile of pixels of one image and one pack of channels: a thread's work.
template <int tile_y, int tile_x>
struct TileGrid {
  int rows, columns, packs;

  __host__ __device__ TileGrid(int size_y, int size_x, int pack_count)
      : rows((size_y + tile_y - 1) / tile_y), columns((size_x + tile_x - 1) / tile_x), packs(pack_count) {}
  __host__ __device__ int count() const { return rows * columns * packs; }

  // Calls f(image, first row, first column, pack) for the tiles of this thread.
  template <class F>
  __device__ void for_each(int images, F&& f) const {
    for (int image = static_cast<int>(blockIdx.y); image < images; image += static_cast<int>(gridDim.y))
      for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < count();
           i += static_cast<int>(gridDim.x) * threads) {
        const int tile = i / packs;
        f(image, tile / columns * tile_y, tile % columns * tile_x, i % packs);
      }
  }
};

constexpr int tile_x = 4;
template <int kernel>
constexpr int tile_y = kernel == 3 ? 2 : 4;
// The channels of a pack: with more taps a tile has more rows and fewer channels.
template <class T, int kernel>
constexpr int max_width = kernel == 3 ? static_cast<int>(16 / sizeof(T)) : 4;

// The values of one pack at (row, column) of an image of size (…, size_x); 0 outside.
template <int width, class T>
__device__ void load_pixel(float (&values)[width], const T* row, int column, int size_x, int channels) {
  if (column < 0 || column >= size_x) {
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = 0;
    return;
  }
  const auto pack = load_pack<width>(row + std::int64_t{column} * channels);
#pragma unroll
  for (int i = 0; i < width; ++i) values[i] = convert<float>(pack.value[i]);
}

template <int width>
__device__ void add_product(float (&sum)[width], const float (&values)[width], const float (&factor)[width]) {
#pragma unroll
  for (int i = 0; i < width; ++i) sum[i] += values[i] * factor[i];
}

template <FusedActivation activation, int width>
__device__ void activate_all(float (&values)[width]) {
#pragma unroll
  for (int i = 0; i < width; ++i) values[i] = activate_value<Backend::cuda, activation>(values[i]);
}

template <int width>
__device__ void activate(FusedActivation activation, float (&values)[width]) {
  switch (activation) {
    case FusedActivation::none:
      return;
    case FusedActivation::relu:
      return activate_all<FusedActivation::relu>(values);
    case FusedActivation::silu:
      return activate_all<FusedActivation::silu>(values);
    case FusedActivation::hardswish:
      return activate_all<FusedActivation::hardswish>(values);
  }
}

// `weight` is (kernel y, kernel x, channels).
template <int kernel, int stride, int width, class T>
__global__ void __launch_bounds__(threads)
    convolve(Sizes s, T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ weight,
             const float* __restrict__ bias, const T* __restrict__ residual, FusedActivation activation) {
  constexpr int rows = tile_y<kernel>, columns = tile_x, half = kernel / 2;
  constexpr int line_size = (columns - 1) * stride + kernel;
  const TileGrid<rows, columns> grid(s.out_y, s.out_x, s.packs);
  grid.for_each(s.images, [&](int image, int first_y, int first_x, int pack) {
    const int channel = pack * width;
    float sum[rows][columns][width] = {};
    const T* const from = x + std::int64_t{image} * s.in_y * s.in_x * s.channels + channel;
#pragma unroll
    for (int r = 0; r < (rows - 1) * stride + kernel; ++r) {
      const int in_y = first_y * stride - half + r;
      if (in_y < 0 || in_y >= s.in_y) continue;
      float line[line_size][width];
#pragma unroll
      for (int c = 0; c < line_size; ++c)
        load_pixel(line[c], from + std::int64_t{in_y} * s.in_x * s.channels, first_x * stride - half + c,
                   s.in_x, s.channels);
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const int ky = r - row * stride;
        if (ky < 0 || ky >= kernel) continue;
#pragma unroll
        for (int kx = 0; kx < kernel; ++kx) {
          float factor[width];
          load_pixel(factor, weight + channel, ky * kernel + kx, kernel * kernel, s.channels);
#pragma unroll
          for (int column = 0; column < columns; ++column)
            add_product(sum[row][column], line[column * stride + kx], factor);
        }
      }
    }
    float shift[width] = {};
    if (bias)
#pragma unroll
      for (int i = 0; i < width; ++i) shift[i] = bias[channel + i];
#pragma unroll
    for (int row = 0; row < rows; ++row)
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        if (first_y + row >= s.out_y || first_x + column >= s.out_x) continue;
        const std::int64_t to =
            ((std::int64_t{image} * s.out_y + first_y + row) * s.out_x + first_x + column) * s.channels +
            channel;
        float values[width];
#pragma unroll
        for (int i = 0; i < width; ++i) values[i] = sum[row][column][i] + shift[i];
        if (residual) {
          const auto added = load_pack<width>(residual + to);
#pragma unroll
          for (int i = 0; i < width; ++i) values[i] += convert<float>(added.value[i]);
        }
        activate(activation, values);
        Pack<T, width> result;
#pragma unroll
        for (int i = 0; i < width; ++i) result.value[i] = convert<T>(values[i]);
        store_pack(y + to, result);
      }
  });
}

// A tile of dx gathers from the pixels of dy whose windows contain it. The first row and column of a tile are
// multiples of the stride, so the taps of every pixel are known at compile time.
template <int kernel, int stride, int width, class T>
__global__ void __launch_bounds__(threads)
    gather_gradient(Sizes s, T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ weight) {
  constexpr int rows = tile_y<kernel>, columns = tile_x, half = kernel / 2;
  static_assert(rows % stride == 0 && columns % stride == 0);
  constexpr int first = -(kernel - 1 - half) / stride;  // the offset of the first row and column of dy
  constexpr int line_rows = (rows - 1 + half) / stride - first + 1;
  constexpr int line_size = (columns - 1 + half) / stride - first + 1;
  const TileGrid<rows, columns> grid(s.in_y, s.in_x, s.packs);
  grid.for_each(s.images, [&](int image, int first_y, int first_x, int pack) {
    const int channel = pack * width;
    float sum[rows][columns][width] = {};
    const T* const from = dy + std::int64_t{image} * s.out_y * s.out_x * s.channels + channel;
#pragma unroll
    for (int r = 0; r < line_rows; ++r) {
      const int out_y = first_y / stride + first + r;
      if (out_y < 0 || out_y >= s.out_y) continue;
      float line[line_size][width];
#pragma unroll
      for (int c = 0; c < line_size; ++c)
        load_pixel(line[c], from + std::int64_t{out_y} * s.out_x * s.channels, first_x / stride + first + c,
                   s.out_x, s.channels);
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const int ky = row + half - stride * (first + r);
        if (ky < 0 || ky >= kernel) continue;
#pragma unroll
        for (int kx = 0; kx < kernel; ++kx) {
          float factor[width];
          load_pixel(factor, weight + channel, ky * kernel + kx, kernel * kernel, s.channels);
#pragma unroll
          for (int c = 0; c < line_size; ++c) {
            const int column = kx - half + stride * (first + c);
            if (column >= 0 && column < columns) add_product(sum[row][column], line[c], factor);
          }
        }
      }
    }
#pragma unroll
    for (int row = 0; row < rows; ++row)
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        if (first_y + row >= s.in_y || first_x + column >= s.in_x) continue;
        Pack<T, width> result;
#pragma unroll
        for (int i = 0; i < width; ++i) result.value[i] = convert<T>(sum[row][column][i]);
        store_pack(
            dx + ((std::int64_t{image} * s.in_y + first_y + row) * s.in_x + first_x + column) * s.channels +
                channel,
            result);
      }
  });
}

// How the rows of dy are summed. The threads of a block are (slots, kernel rows, lanes): a lane has one pack
// of channels and one row of the kernel, and every slot has other rows of the part.
struct SumGrid {
  int lanes;
  int lane_groups;
  int slots;
  int parts;
  int part_rows;
};

constexpr int sum_threads = 256;

SumGrid sum_grid(const Sizes& s, int kernel, Device device) {
  SumGrid grid{};
  grid.lane_groups = (s.packs + 31) / 32;
  grid.lanes = (s.packs + grid.lane_groups - 1) / grid.lane_groups;
  grid.slots = sum_threads / (grid.lanes * kernel);
  const std::int64_t rows = std::int64_t{s.images} * s.out_y;
  const std::int64_t max_parts =
      std::max<std::int64_t>(1, 4 * multiprocessor_count(device) / grid.lane_groups);
  constexpr int min_rows = 4;  // per slot: shorter parts cost more to reduce than they save
  const std::int64_t parts = std::clamp<std::int64_t>(rows / (grid.slots * min_rows), 1, max_parts);
  grid.part_rows = static_cast<int>((rows + parts - 1) / parts);
  grid.parts = static_cast<int>((rows + grid.part_rows - 1) / grid.part_rows);
  return grid;
}

// partial is (parts, kernel y, kernel x, channels).
template <int kernel, int stride, int width, class T>
__global__ void __launch_bounds__(sum_threads)
    sum_weight_gradient(Sizes s, SumGrid grid, float* __restrict__ partial, const T* __restrict__ dy,
                        const T* __restrict__ x) {
  constexpr int half = kernel / 2;
  const int thread = static_cast<int>(threadIdx.x), block_size = static_cast<int>(blockDim.x);
  const int lane = thread % grid.lanes, ky = thread / grid.lanes % kernel,
            slot = thread / (grid.lanes * kernel);
  const int pack = static_cast<int>(blockIdx.y) * grid.lanes + lane, channel = pack * width;
  float sum[kernel][width] = {};
  if (pack < s.packs) {
    const int begin = static_cast<int>(blockIdx.x) * grid.part_rows,
              end = min(begin + grid.part_rows, s.images * s.out_y);
    for (int row = begin + slot; row < end; row += grid.slots) {
      const int image = row / s.out_y, in_y = row % s.out_y * stride + ky - half;
      if (in_y < 0 || in_y >= s.in_y) continue;
      const T* const gradients = dy + std::int64_t{row} * s.out_x * s.channels + channel;
      const T* const values = x + (std::int64_t{image} * s.in_y + in_y) * s.in_x * s.channels + channel;
      float window[kernel][width];  // the pixels under the kernel's row, which slides along
#pragma unroll
      for (int k = 0; k < kernel - stride; ++k)
        load_pixel(window[k + stride], values, k - half, s.in_x, s.channels);
      for (int column = 0; column < s.out_x; ++column) {
#pragma unroll
        for (int k = 0; k + stride < kernel; ++k)
#pragma unroll
          for (int i = 0; i < width; ++i) window[k][i] = window[k + stride][i];
#pragma unroll
        for (int k = kernel - stride; k < kernel; ++k)
          load_pixel(window[k], values, column * stride - half + k, s.in_x, s.channels);
        float g[width];
        load_pixel(g, gradients, column, s.out_x, s.channels);
#pragma unroll
        for (int k = 0; k < kernel; ++k) add_product(sum[k], window[k], g);
      }
    }
  }
  __shared__ float shared[kernel * width * sum_threads];
#pragma unroll
  for (int k = 0; k < kernel; ++k)
#pragma unroll
    for (int i = 0; i < width; ++i) shared[(k * width + i) * block_size + thread] = sum[k][i];
  __syncthreads();
  if (slot > 0 || pack >= s.packs) return;
#pragma unroll
  for (int k = 0; k < kernel; ++k)
#pragma unroll
    for (int i = 0; i < width; ++i) {
      float total = 0;
      for (int other = 0; other < grid.slots; ++other)
        total += shared[(k * width + i) * block_size + other * grid.lanes * kernel + thread];
      partial[((std::int64_t{blockIdx.x} * kernel + ky) * kernel + k) * s.channels + channel + i] = total;
    }
}

constexpr int reduce_lanes = 32, reduce_slices = 8;

// dweight (channels, taps) from partial (parts, taps, channels).
__global__ void __launch_bounds__(reduce_lanes* reduce_slices)
    reduce_parts(int parts, int taps, int channels, float* __restrict__ dweight,
                 const float* __restrict__ partial) {
  const int size = taps * channels, i = static_cast<int>(blockIdx.x * reduce_lanes + threadIdx.x);
  double sum = 0;
  if (i < size)
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += reduce_slices)
      sum += static_cast<double>(partial[std::int64_t{part} * size + i]);
  __shared__ double shared[reduce_slices][reduce_lanes];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || i >= size) return;
  sum = 0;
  for (int slice = 0; slice < reduce_slices; ++slice) sum += shared[slice][threadIdx.x];
  dweight[i % channels * taps + i / channels] = static_cast<float>(sum);
}

// (channels, taps) → (taps, channels)
template <class T>
__global__ void __launch_bounds__(threads)
    transpose_weight(int taps, int channels, T* __restrict__ to, const T* __restrict__ from) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i < taps * channels) to[i] = from[i % channels * taps + i / channels];
}

Sizes sizes_for(const Conv2dPlan& plan, int width) {
  return {.images = static_cast<int>(plan.images),
          .channels = static_cast<int>(plan.channels),
          .in_y = static_cast<int>(plan.in.y),
          .in_x = static_cast<int>(plan.in.x),
          .out_y = static_cast<int>(plan.out.y),
          .out_x = static_cast<int>(plan.out.x),
          .packs = static_cast<int>(plan.channels) / width};
}

// Calls f.operator()<T, kernel, stride>().
template <class F>
void on_window(const Conv2dPlan& plan, F&& f) {
  on_dtype(TypeList<float, BFloat16>{}, plan.dtype, "conv2d", [&]<class T>() {
    const auto with_kernel = [&]<int kernel>() {
      plan.window.stride.y == 1 ? f.template operator()<T, kernel, 1>()
                                : f.template operator()<T, kernel, 2>();
    };
    plan.kernel.y == 3 ? with_kernel.template operator()<3>() : with_kernel.template operator()<5>();
  });
}

// Calls f.operator()<width>() with `full` if it divides the channels, else with 1.
template <int full, class F>
void on_width(const Conv2dPlan& plan, F&& f) {
  plan.channels % full == 0 ? f.template operator()<full>() : f.template operator()<1>();
}

template <int kernel>
dim3 grid_of(const Sizes& s, int size_y, int size_x) {
  constexpr int max_images = 65535;
  const TileGrid<tile_y<kernel>, tile_x> tiles(size_y, size_x, s.packs);
  return dim3(blocks_for(tiles.count(), threads), static_cast<unsigned>(std::min(s.images, max_images)));
}

template <class T>
Buffer transposed(const Conv2dPlan& plan, const std::byte* weight, StreamView stream) {
  const Sizes s = sizes_for(plan, 1);
  const int taps = static_cast<int>(plan.kernel.y * plan.kernel.x);
  Buffer packed(static_cast<std::size_t>(taps * s.channels) * sizeof(T), stream);
  transpose_weight<T><<<blocks_for(taps * s.channels, threads), threads, 0, cuda_stream(stream)>>>(
      taps, s.channels, reinterpret_cast<T*>(packed.data()), reinterpret_cast<const T*>(weight));
  check_launch("depthwise conv2d weight");
  return packed;
}

}  // namespace

bool is_depthwise_on_cuda(const Conv2dPlan& plan) {
  constexpr std::int64_t max_elements = std::int64_t{1} << 30;
  const std::int64_t kernel = plan.kernel.y, stride = plan.window.stride.y;
  const Window expected{.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
  return is_depthwise(plan) && plan.dtype != DType::f64 && plan.kernel == YX{kernel, kernel} &&
         (kernel == 3 || kernel == 5) && (stride == 1 || stride == 2) && plan.window == expected &&
         plan.in.y * plan.in.x * plan.channels <= max_elements && plan.images * plan.in.y <= max_elements;
}

void depthwise_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                      const Conv2dEpilogue& epilogue, StreamView stream) {
  on_window(plan, [&]<class T, int kernel, int stride>() {
    const Buffer packed = transposed<T>(plan, weight, stream);
    on_width<max_width<T, kernel>>(plan, [&]<int width>() {
      const Sizes s = sizes_for(plan, width);
      convolve<kernel, stride, width, T>
          <<<grid_of<kernel>(s, s.out_y, s.out_x), threads, 0, cuda_stream(stream)>>>(
              s, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x),
              reinterpret_cast<const T*>(packed.data()), reinterpret_cast<const float*>(epilogue.bias),
              reinterpret_cast<const T*>(epilogue.residual), epilogue.activation);
    });
    check_launch("depthwise conv2d");
  });
}

void depthwise_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                              const std::byte* weight, StreamView stream) {
  on_window(plan, [&]<class T, int kernel, int stride>() {
    const Buffer packed = transposed<T>(plan, weight, stream);
    on_width<max_width<T, kernel>>(plan, [&]<int width>() {
      const Sizes s = sizes_for(plan, width);
      gather_gradient<kernel, stride, width, T>
          <<<grid_of<kernel>(s, s.in_y, s.in_x), threads, 0, cuda_stream(stream)>>>(
              s, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy),
              reinterpret_cast<const T*>(packed.data()));
    });
    check_launch("depthwise conv2d input gradient");
  });
}

void depthwise_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                               const std::byte* x, StreamView stream) {
  const int channels = static_cast<int>(plan.channels),
            taps = static_cast<int>(plan.kernel.y * plan.kernel.x);
  on_window(plan, [&]<class T, int kernel, int stride>() {
    on_width<static_cast<int>(16 / sizeof(T))>(plan, [&]<int width>() {
      const Sizes s = sizes_for(plan, width);
      const SumGrid grid = sum_grid(s, kernel, stream.device);
      const Buffer partial(
          static_cast<std::size_t>(grid.parts) * static_cast<std::size_t>(taps * channels) * sizeof(float),
          stream);
      auto* const sums = reinterpret_cast<float*>(partial.data());
      const dim3 blocks(static_cast<unsigned>(grid.parts), static_cast<unsigned>(grid.lane_groups));
      sum_weight_gradient<kernel, stride, width, T>
          <<<blocks, static_cast<unsigned>(grid.lanes * kernel * grid.slots), 0, cuda_stream(stream)>>>(
              s, grid, sums, reinterpret_cast<const T*>(dy), reinterpret_cast<const T*>(x));
      check_launch("depthwise conv2d weight gradient");
      reduce_parts<<<blocks_for(taps * channels, reduce_lanes), dim3(reduce_lanes, reduce_slices), 0,
                     cuda_stream(stream)>>>(grid.parts, taps, channels, reinterpret_cast<float*>(dweight),
                                            sums);
      check_launch("depthwise conv2d weight gradient sum");
    });
  });
}

}  // namespace tandem::detail
