#include "tandem/ops/conv/depthwise.cuh"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/conv/depthwise_mma.cuh"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {
namespace {

constexpr int threads = 128;
// Blocks that a multiprocessor shall hold at a time: more hide more latency, fewer leave more registers.
template <int kernel>
constexpr int resident_blocks = kernel == 3 ? 5 : 4;

// The sizes of one image, which fit 32 bits, and what the grid covers.
struct Sizes {
  int images;
  int channels;
  int in_y, in_x;
  int out_y, out_x;
  int packs;  // of channels
};

// How convolve() and sum_weight_gradient() cut an image: into strips of columns, each from top to bottom or
// in parts of rows where images alone are too few for the GPU.
template <int kernel, int stride>
struct Strip {
  static constexpr int columns = 2;
  static constexpr int half = kernel / 2;
  static constexpr int line_size = (columns - 1) * stride + kernel;  // pixels of a row under the strip
  // Rows of the output that a row of the input contributes to. Input row `stride · t + e` under the strip is
  // tap row `stride · j + e` of output row `t − j`.
  static constexpr int open_rows = (kernel + stride - 1) / stride;
  static_assert((open_rows - 1) * stride == kernel - 1);
};

// The same for gather_gradient(): strips of dx in pairs of rows.
template <int kernel>
struct GatherStrip {
  static constexpr int columns = 4;
  static constexpr int half = kernel / 2;
  static constexpr int first = -(kernel - 1 - half) / 2;  // offset of the first row and column of dy
  static constexpr int lines = (1 + half) / 2 - first + 1;
  static constexpr int line_size = (columns - 1 + half) / 2 - first + 1;
};

struct StripGrid {
  int strips;  // in the width of an image
  int parts;   // in its height
  int rows;    // of the output in a part

  __host__ __device__ std::int64_t per_image() const { return std::int64_t{strips} * parts; }
};

// Cuts images of `size_y` rows and `size_x` columns, with as many parts as give the GPU enough threads, but
// of at least `min_rows` rows each.
StripGrid strip_grid(const Sizes& s, int size_y, int size_x, int columns, int min_rows, Device device) {
  const int strips = (size_x + columns - 1) / columns;
  const std::int64_t wanted = std::int64_t{2048} * multiprocessor_count(device),
                     given = std::int64_t{s.images} * strips * s.packs;
  const std::int64_t parts = std::clamp<std::int64_t>((wanted + given - 1) / std::max<std::int64_t>(1, given),
                                                      1, std::max(1, size_y / min_rows));
  const int rows = static_cast<int>((size_y + parts - 1) / parts);
  return {.strips = strips, .parts = (size_y + rows - 1) / rows, .rows = rows};
}

template <int width, class T>
__device__ void to_floats(float (&values)[width], const Pack<T, width>& pack) {
#pragma unroll
  for (int i = 0; i < width; ++i) values[i] = convert<float>(pack.value[i]);
}

// The pixels of a row from column `first` on; 0 outside of the image.
template <int count, int width, class T>
__device__ void load_pixels(Pack<T, width> (&pixels)[count], const T* row, int first, int size_x,
                            int channels) {
#pragma unroll
  for (int c = 0; c < count; ++c)
    pixels[c] = static_cast<unsigned>(first + c) < static_cast<unsigned>(size_x)
                    ? load_pack<width>(row + (first + c) * channels)
                    : Pack<T, width>{};
}

// The taps of a pack of channels from a weight (channels, taps).
template <int taps, int width, class T>
__device__ void load_taps(float (&factors)[taps][width], const T* weight, int channel) {
#pragma unroll
  for (int k = 0; k < width; ++k)
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) factors[tap][k] = convert<float>(weight[(channel + k) * taps + tap]);
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

// A thread convolves a strip of one pack of channels, row by row: it loads every pixel once, one row ahead,
// and keeps the sums of the rows that are not complete. `flipped`: with the taps in reverse order.
template <bool flipped, int kernel, int stride, int width, class T>
__global__ void __launch_bounds__(threads, resident_blocks<kernel>)
    convolve(Sizes s, StripGrid grid, T* __restrict__ y, const T* __restrict__ x,
             const T* __restrict__ weight, const float* __restrict__ bias, const T* __restrict__ residual,
             FusedActivation activation) {
  using Geometry = Strip<kernel, stride>;
  constexpr int columns = Geometry::columns, line_size = Geometry::line_size, open = Geometry::open_rows,
                taps = kernel * kernel;
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= grid.strips * s.packs) return;
  const int channel = i % s.packs * width, first_x = i / s.packs * columns;
  float factors[taps][width], shift[width] = {};
  load_taps(factors, weight, channel);
  if (bias)
#pragma unroll
    for (int k = 0; k < width; ++k) shift[k] = bias[channel + k];

  for (int part = static_cast<int>(blockIdx.y); part < s.images * grid.parts;
       part += static_cast<int>(gridDim.y)) {
    const int image = part / grid.parts, first_y = part % grid.parts * grid.rows,
              rows = min(grid.rows, s.out_y - first_y);
    const int row_stride = s.in_x * s.channels, first_line = first_y * stride - Geometry::half;
    const T* from = x + (std::int64_t{image} * s.in_y + first_line) * row_stride + channel;
    Pack<T, width> next[line_size];
    const auto is_inside = [&](int line) {
      return line < (rows - 1) * stride + kernel &&
             static_cast<unsigned>(first_line + line) < static_cast<unsigned>(s.in_y);
    };
    const auto load_next = [&](int line) {
      if (is_inside(line)) load_pixels(next, from, first_x * stride - Geometry::half, s.in_x, s.channels);
      from += row_stride;
    };
    load_next(0);
    std::int64_t to = ((std::int64_t{image} * s.out_y + first_y) * s.out_x + first_x) * s.channels + channel;
    float sums[open][columns][width] = {};
    for (int step = 0; step < rows + open - 1; step += open)
#pragma unroll
      for (int u = 0; u < open; ++u) {
        const int t = step + u;
        if (t >= rows + open - 1) break;
#pragma unroll
        for (int e = 0; e < stride; ++e) {
          const int line = stride * t + e;
          float values[line_size][width];
#pragma unroll
          for (int c = 0; c < line_size; ++c) to_floats(values[c], next[c]);
          load_next(line + 1);
          if (is_inside(line))
#pragma unroll
            for (int j = 0; stride * j + e < kernel; ++j)
#pragma unroll
              for (int kx = 0; kx < kernel; ++kx) {
                const int tap = (stride * j + e) * kernel + kx;
#pragma unroll
                for (int column = 0; column < columns; ++column)
                  add_product(sums[(u - j + open) % open][column], values[column * stride + kx],
                              factors[flipped ? taps - 1 - tap : tap]);
              }
        }
        // Row t − (open − 1) of the output is complete. The second line of a stride of 2 was not part of it.
        if (t >= open - 1)
#pragma unroll
          for (int column = 0; column < columns; ++column)
            if (first_x + column < s.out_x) {
              float(&sum)[width] = sums[(u + 1) % open][column];
#pragma unroll
              for (int k = 0; k < width; ++k) sum[k] += shift[k];
              if (residual) {
                float added[width];
                to_floats(added, load_pack<width>(residual + to + column * s.channels));
#pragma unroll
                for (int k = 0; k < width; ++k) sum[k] += added[k];
              }
              activate(activation, sum);
              Pack<T, width> result;
#pragma unroll
              for (int k = 0; k < width; ++k) result.value[k] = convert<T>(sum[k]);
              store_pack(y + to + column * s.channels, result);
            }
        if (t >= open - 1) to += s.out_x * s.channels;
#pragma unroll
        for (int column = 0; column < columns; ++column)
#pragma unroll
          for (int k = 0; k < width; ++k) sums[(u + 1) % open][column][k] = 0;
      }
  }
}

// The gradient of a convolution with stride 2. A thread goes down a strip of dx in pairs of rows, which
// gather from the same rows of dy. The first row and column of a pair are even, so the taps of every pixel
// are known at compile time.
template <int kernel, int width, class T>
__global__ void __launch_bounds__(threads, resident_blocks<kernel>)
    gather_gradient(Sizes s, StripGrid grid, T* __restrict__ dx, const T* __restrict__ dy,
                    const T* __restrict__ weight) {
  using Geometry = GatherStrip<kernel>;
  constexpr int columns = Geometry::columns, half = kernel / 2, first = Geometry::first,
                lines = Geometry::lines, line_size = Geometry::line_size, taps = kernel * kernel;
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= grid.strips * s.packs) return;
  const int channel = i % s.packs * width, first_x = i / s.packs * columns;
  float factors[taps][width];
  load_taps(factors, weight, channel);

  for (int part = static_cast<int>(blockIdx.y); part < s.images * grid.parts;
       part += static_cast<int>(gridDim.y)) {
    const int image = part / grid.parts, first_pair = part % grid.parts * grid.rows,
              pairs = min(grid.rows, (s.in_y + 1) / 2 - first_pair);
    const T* const from = dy + std::int64_t{image} * s.out_y * s.out_x * s.channels + channel;
    Pack<T, width> next[line_size];
    const auto load_next = [&](int line) {  // counted from the first that the part needs
      const int row = first_pair + first + line;
      const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(s.out_y);
      load_pixels(next, from + std::int64_t{row} * s.out_x * s.channels, first_x / 2 + first,
                  inside ? s.out_x : 0, s.channels);
    };
    float values[lines][line_size][width];  // line n is in slot n % lines
    const auto keep_next = [&](int slot) {
#pragma unroll
      for (int c = 0; c < line_size; ++c) to_floats(values[slot][c], next[c]);
    };
#pragma unroll
    for (int line = 0; line < lines - 1; ++line) {
      load_next(line);
      keep_next(line);
    }
    load_next(lines - 1);
    for (int step = 0; step < pairs; step += lines)
#pragma unroll
      for (int u = 0; u < lines; ++u) {
        const int pair = step + u;
        if (pair >= pairs) break;
        keep_next((u + lines - 1) % lines);
        load_next(pair + lines);
        float sums[2][columns][width] = {};
#pragma unroll
        for (int line = 0; line < lines; ++line)
#pragma unroll
          for (int row = 0; row < 2; ++row) {
            const int ky = row + half - 2 * (first + line);
            if (ky < 0 || ky >= kernel) continue;
#pragma unroll
            for (int kx = 0; kx < kernel; ++kx)
#pragma unroll
              for (int c = 0; c < line_size; ++c) {
                const int column = kx - half + 2 * (first + c);
                if (column >= 0 && column < columns)
                  add_product(sums[row][column], values[(u + line) % lines][c], factors[ky * kernel + kx]);
              }
          }
#pragma unroll
        for (int row = 0; row < 2; ++row)
#pragma unroll
          for (int column = 0; column < columns; ++column) {
            const int in_y = 2 * (first_pair + pair) + row, in_x = first_x + column;
            if (in_y >= s.in_y || in_x >= s.in_x) continue;
            Pack<T, width> result;
#pragma unroll
            for (int k = 0; k < width; ++k) result.value[k] = convert<T>(sums[row][column][k]);
            store_pack(dx + ((std::int64_t{image} * s.in_y + in_y) * s.in_x + in_x) * s.channels + channel,
                       result);
          }
      }
  }
}

// The threads of a block are (slots, lanes): a lane has one pack of channels, and every slot other strips.
struct SumGrid {
  int lanes;
  int lane_groups;
  int slots;
  int blocks;
};

SumGrid sum_grid(const Sizes& s, const StripGrid& strips, Device device) {
  SumGrid grid{};
  grid.lane_groups = (s.packs + 31) / 32;
  grid.lanes = (s.packs + grid.lane_groups - 1) / grid.lane_groups;
  grid.slots = threads / grid.lanes;
  const std::int64_t max_blocks =
      std::max<std::int64_t>(1, 8 * multiprocessor_count(device) / grid.lane_groups);
  grid.blocks = static_cast<int>(
      std::clamp<std::int64_t>(s.images * strips.per_image() / (2 * grid.slots), 1, max_blocks));
  return grid;
}

// partial is (blocks, taps, channels). A thread goes down a strip as in convolve(), but keeps rows of dy.
template <int kernel, int stride, int width, class T>
__global__ void __launch_bounds__(threads, resident_blocks<kernel>)
    sum_weight_gradient(Sizes s, StripGrid strips, SumGrid grid, float* __restrict__ partial,
                        const T* __restrict__ dy, const T* __restrict__ x) {
  using Geometry = Strip<kernel, stride>;
  constexpr int columns = Geometry::columns, line_size = Geometry::line_size, open = Geometry::open_rows,
                taps = kernel * kernel;
  const int thread = static_cast<int>(threadIdx.x), block_size = static_cast<int>(blockDim.x);
  const int lane = thread % grid.lanes, slot = thread / grid.lanes;
  const int pack = static_cast<int>(blockIdx.y) * grid.lanes + lane, channel = pack * width;
  float sums[taps][width] = {};
  const std::int64_t count = pack < s.packs ? s.images * strips.per_image() : 0;
  for (std::int64_t item = std::int64_t{blockIdx.x} * grid.slots + slot; item < count;
       item += std::int64_t{gridDim.x} * grid.slots) {
    const int image = static_cast<int>(item / strips.per_image()),
              in_image = static_cast<int>(item % strips.per_image());
    const int first_x = in_image % strips.strips * columns, first_y = in_image / strips.strips * strips.rows,
              rows = min(strips.rows, s.out_y - first_y);
    const T* const from = x + std::int64_t{image} * s.in_y * s.in_x * s.channels + channel;
    const T* const gradient_from = dy + std::int64_t{image} * s.out_y * s.out_x * s.channels + channel;
    Pack<T, width> next[line_size], next_gradients[columns];
    const auto load_next = [&](int line) {
      const int row = first_y * stride - Geometry::half + line;
      const bool inside =
          line < (rows - 1) * stride + kernel && static_cast<unsigned>(row) < static_cast<unsigned>(s.in_y);
      load_pixels(next, from + std::int64_t{row} * s.in_x * s.channels, first_x * stride - Geometry::half,
                  inside ? s.in_x : 0, s.channels);
    };
    const auto load_gradients = [&](int row) {
      load_pixels(next_gradients, gradient_from + std::int64_t{first_y + row} * s.out_x * s.channels, first_x,
                  row < rows ? s.out_x : 0, s.channels);
    };
    load_next(0);
    load_gradients(0);
    float gradients[open][columns][width] = {};
    for (int step = 0; step < rows + open - 1; step += open)
#pragma unroll
      for (int u = 0; u < open; ++u) {
        const int t = step + u;
        if (t >= rows + open - 1) break;
#pragma unroll
        for (int column = 0; column < columns; ++column)
          to_floats(gradients[u][column], next_gradients[column]);
        load_gradients(t + 1);
#pragma unroll
        for (int e = 0; e < stride; ++e) {
          float values[line_size][width];
#pragma unroll
          for (int c = 0; c < line_size; ++c) to_floats(values[c], next[c]);
          load_next(stride * t + e + 1);
#pragma unroll
          for (int j = 0; stride * j + e < kernel; ++j)
#pragma unroll
            for (int kx = 0; kx < kernel; ++kx)
#pragma unroll
              for (int column = 0; column < columns; ++column)
                add_product(sums[(stride * j + e) * kernel + kx], values[column * stride + kx],
                            gradients[(u - j + open) % open][column]);
        }
      }
  }
  __shared__ float shared[taps * width * threads];
#pragma unroll
  for (int tap = 0; tap < taps; ++tap)
#pragma unroll
    for (int k = 0; k < width; ++k) shared[(tap * width + k) * block_size + thread] = sums[tap][k];
  __syncthreads();
  if (slot > 0 || pack >= s.packs) return;
  for (int tap = 0; tap < taps; ++tap)
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float total = 0;
      for (int other = 0; other < grid.slots; ++other)
        total += shared[(tap * width + k) * block_size + other * grid.lanes + lane];
      partial[(std::int64_t{blockIdx.x} * taps + tap) * s.channels + channel + k] = total;
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

// Calls f.operator()<width>() with the channels of a pack, `max_width` of them if they are a divisor.
template <int max_width = 2, class F>
void on_width(const Conv2dPlan& plan, F&& f) {
  if (plan.channels % max_width == 0)
    f.template operator()<max_width>();
  else
    plan.channels % 2 == 0 ? f.template operator()<2>() : f.template operator()<1>();
}

// The gradients of 3×3 kernels leave registers for more channels.
template <int kernel>
constexpr int gradient_width = kernel == 3 ? 4 : 2;

dim3 blocks_of(const Sizes& s, const StripGrid& grid) {
  constexpr std::int64_t max_blocks = 65535;
  return dim3(blocks_for(std::int64_t{grid.strips} * s.packs, threads),
              static_cast<unsigned>(std::min(std::int64_t{s.images} * grid.parts, max_blocks)));
}

// `flipped`: the gradient of a convolution with stride 1 is one of dy, with the taps in reverse order.
template <bool flipped, int kernel, int stride, class T>
void run_convolve(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, StreamView stream) {
  on_width(plan, [&]<int width>() {
    const Sizes s = sizes_for(plan, width);
    const StripGrid grid =
        strip_grid(s, s.out_y, s.out_x, Strip<kernel, stride>::columns, kernel, stream.device);
    convolve<flipped, kernel, stride, width, T><<<blocks_of(s, grid), threads, 0, cuda_stream(stream)>>>(
        s, grid, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(weight),
        reinterpret_cast<const float*>(epilogue.bias), reinterpret_cast<const T*>(epilogue.residual),
        epilogue.activation);
  });
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
  if (is_depthwise_on_tensor_cores(plan, stream.device))
    return depthwise_conv2d_on_tensor_cores(plan, false, y, x, weight, epilogue, stream);
  on_window(plan, [&]<class T, int kernel, int stride>() {
    run_convolve<false, kernel, stride, T>(plan, y, x, weight, epilogue, stream);
  });
  check_launch("depthwise conv2d");
}

void depthwise_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                              const std::byte* weight, StreamView stream) {
  if (plan.window.stride.y == 1 && is_depthwise_on_tensor_cores(plan, stream.device))
    return depthwise_conv2d_on_tensor_cores(plan, true, dx, dy, weight, {}, stream);
  on_window(plan, [&]<class T, int kernel, int stride>() {
    if constexpr (stride == 1)
      run_convolve<true, kernel, stride, T>(plan, dx, dy, weight, {}, stream);
    else
      on_width<gradient_width<kernel>>(plan, [&]<int width>() {
        const Sizes s = sizes_for(plan, width);
        const StripGrid grid = strip_grid(s, (s.in_y + 1) / 2, s.in_x, GatherStrip<kernel>::columns,
                                          GatherStrip<kernel>::lines, stream.device);
        gather_gradient<kernel, width, T><<<blocks_of(s, grid), threads, 0, cuda_stream(stream)>>>(
            s, grid, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy),
            reinterpret_cast<const T*>(weight));
      });
  });
  check_launch("depthwise conv2d input gradient");
}

void depthwise_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                               const std::byte* x, StreamView stream) {
  const int channels = static_cast<int>(plan.channels),
            taps = static_cast<int>(plan.kernel.y * plan.kernel.x);
  on_window(plan, [&]<class T, int kernel, int stride>() {
    on_width<gradient_width<kernel>>(plan, [&]<int width>() {
      const Sizes s = sizes_for(plan, width);
      const StripGrid strips =
          strip_grid(s, s.out_y, s.out_x, Strip<kernel, stride>::columns, kernel, stream.device);
      const SumGrid grid = sum_grid(s, strips, stream.device);
      const Buffer partial(
          static_cast<std::size_t>(grid.blocks) * static_cast<std::size_t>(taps * channels) * sizeof(float),
          stream);
      auto* const sums = reinterpret_cast<float*>(partial.data());
      const dim3 blocks(static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.lane_groups));
      sum_weight_gradient<kernel, stride, width, T>
          <<<blocks, static_cast<unsigned>(grid.lanes * grid.slots), 0, cuda_stream(stream)>>>(
              s, strips, grid, sums, reinterpret_cast<const T*>(dy), reinterpret_cast<const T*>(x));
      check_launch("depthwise conv2d weight gradient");
      reduce_parts<<<blocks_for(taps * channels, reduce_lanes), dim3(reduce_lanes, reduce_slices), 0,
                     cuda_stream(stream)>>>(grid.blocks, taps, channels, reinterpret_cast<float*>(dweight),
                                            sums);
      check_launch("depthwise conv2d weight gradient sum");
    });
  });
}

}  // namespace tandem::detail
