#include "tandem/ops/conv/winograd.cuh"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/ops/conv/winograd_transform.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

using namespace winograd;

constexpr int threads = 256;

// How the results of a chunk of images are tiled into 4×4. Tiles are numbered across all images of the chunk
// and stored in `splits` splits of `split_tiles` tiles each; tiles beyond the last are zeros.
struct Tiling {
  int in_y, in_x;
  int out_y, out_x;
  int pad_y, pad_x;
  int rows, columns;  // of tiles in an image
  int images;
  int tiles;
  int split_tiles;
  int splits;
};

Tiling make_tiling(const Conv2dPlan& plan, std::int64_t images, int splits) {
  Tiling tiling{};
  tiling.in_y = static_cast<int>(plan.in.y), tiling.in_x = static_cast<int>(plan.in.x);
  tiling.out_y = static_cast<int>(plan.out.y), tiling.out_x = static_cast<int>(plan.out.x);
  tiling.pad_y = static_cast<int>(plan.window.padding.y),
  tiling.pad_x = static_cast<int>(plan.window.padding.x);
  tiling.rows = (tiling.out_y + output_tile - 1) / output_tile,
  tiling.columns = (tiling.out_x + output_tile - 1) / output_tile;
  tiling.images = static_cast<int>(images);
  tiling.tiles = tiling.images * tiling.rows * tiling.columns;
  tiling.splits = splits;
  tiling.split_tiles = (tiling.tiles + splits - 1) / splits;
  return tiling;
}

// The image of a tile and its top left result.
struct TilePosition {
  int image, y, x;
};

__device__ TilePosition position_of(const Tiling& tiling, int tile) {
  return {tile / (tiling.rows * tiling.columns), tile / tiling.columns % tiling.rows * output_tile,
          tile % tiling.columns * output_tile};
}

// The offset of (element 0, tile, channel) in [splits][tile elements][split tiles][channels]. Consecutive
// tile elements are split_tiles · channels apart.
__device__ std::int64_t offset_of(const Tiling& tiling, int tile, int channel, int channels) {
  return (std::int64_t{tile / tiling.split_tiles} * tile_elements * tiling.split_tiles +
          tile % tiling.split_tiles) *
             channels +
         channel;
}

// V = Bᵀ d B for every input tile.
__global__ void __launch_bounds__(threads)
    transform_inputs(Tiling tiling, int channels, float* __restrict__ v, const float* __restrict__ x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / channels), channel = static_cast<int>(i % channels);
  if (tile >= tiling.split_tiles * tiling.splits) return;
  float d[tile_elements], t[tile_elements];
  if (tile < tiling.tiles) {
    const TilePosition at = position_of(tiling, tile);
    const float* const image = x + std::int64_t{at.image} * tiling.in_y * tiling.in_x * channels + channel;
#pragma unroll
    for (int r = 0; r < input_tile; ++r) {
      const int row = at.y + r - tiling.pad_y;
#pragma unroll
      for (int c = 0; c < input_tile; ++c) {
        const int column = at.x + c - tiling.pad_x;
        const bool inside = row >= 0 && row < tiling.in_y && column >= 0 && column < tiling.in_x;
        d[r * input_tile + c] = inside ? image[(std::int64_t{row} * tiling.in_x + column) * channels] : 0.0f;
      }
    }
#pragma unroll
    for (int c = 0; c < input_tile; ++c) input_transform(t + c, d + c, input_tile);
#pragma unroll
    for (int r = 0; r < input_tile; ++r) input_transform(d + r * input_tile, t + r * input_tile, 1);
  } else {
#pragma unroll
    for (int p = 0; p < tile_elements; ++p) d[p] = 0;
  }
  float* const to = v + offset_of(tiling, tile, channel, channels);
  const std::int64_t step = std::int64_t{tiling.split_tiles} * channels;
#pragma unroll
  for (int p = 0; p < tile_elements; ++p) to[p * step] = d[p];
}

// dM = A dy Aᵀ for every tile of the output gradient.
__global__ void __launch_bounds__(threads)
    transform_gradients(Tiling tiling, int channels, float* __restrict__ m, const float* __restrict__ dy) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / channels), channel = static_cast<int>(i % channels);
  if (tile >= tiling.split_tiles * tiling.splits) return;
  float g[output_tile * output_tile], t[input_tile * output_tile], d[tile_elements];
  const TilePosition at = position_of(tiling, tile);
  const float* const image = dy + std::int64_t{at.image} * tiling.out_y * tiling.out_x * channels + channel;
#pragma unroll
  for (int r = 0; r < output_tile; ++r)
#pragma unroll
    for (int c = 0; c < output_tile; ++c) {
      const int row = at.y + r, column = at.x + c;
      const bool inside = tile < tiling.tiles && row < tiling.out_y && column < tiling.out_x;
      g[r * output_tile + c] = inside ? image[(std::int64_t{row} * tiling.out_x + column) * channels] : 0.0f;
    }
#pragma unroll
  for (int c = 0; c < output_tile; ++c) output_transform_transposed(t + c, output_tile, g + c, output_tile);
#pragma unroll
  for (int r = 0; r < input_tile; ++r)
    output_transform_transposed(d + r * input_tile, 1, t + r * output_tile, 1);
  float* const to = m + offset_of(tiling, tile, channel, channels);
  const std::int64_t step = std::int64_t{tiling.split_tiles} * channels;
#pragma unroll
  for (int p = 0; p < tile_elements; ++p) to[p * step] = d[p];
}

// U = G g Gᵀ, [tile elements][channels][filters]. transposed: for the input gradient, which needs the filters
// rotated by 180° with channels and filters swapped.
__global__ void __launch_bounds__(threads)
    transform_filters(int channels, int filters, bool transposed, float* __restrict__ u,
                      const float* __restrict__ weight) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= channels * filters) return;
  const int channel = i / filters, filter = i % filters;
  float g[9], t[18], d[tile_elements];
#pragma unroll
  for (int tap = 0; tap < 9; ++tap)
    g[tap] = transposed ? weight[(std::int64_t{channel} * 9 + 8 - tap) * filters + filter]
                        : weight[(std::int64_t{filter} * 9 + tap) * channels + channel];
#pragma unroll
  for (int c = 0; c < 3; ++c) filter_transform(t + c, 3, g + c, 3);
#pragma unroll
  for (int r = 0; r < input_tile; ++r) filter_transform(d + r * input_tile, 1, t + r * 3, 1);
#pragma unroll
  for (int p = 0; p < tile_elements; ++p) u[std::int64_t{p} * channels * filters + i] = d[p];
}

// y = relu(Aᵀ M A + bias + residual) for every tile.
__global__ void __launch_bounds__(threads)
    transform_outputs(Tiling tiling, int filters, float* __restrict__ y, const float* __restrict__ m,
                      const float* __restrict__ bias, const float* __restrict__ residual, bool relu) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / filters), filter = static_cast<int>(i % filters);
  if (tile >= tiling.tiles) return;
  float d[tile_elements], t[output_tile * input_tile], out[output_tile * output_tile];
  const float* const from = m + offset_of(tiling, tile, filter, filters);
  const std::int64_t step = std::int64_t{tiling.split_tiles} * filters;
#pragma unroll
  for (int p = 0; p < tile_elements; ++p) d[p] = from[p * step];
#pragma unroll
  for (int c = 0; c < input_tile; ++c) output_transform(t + c, input_tile, d + c, input_tile);
#pragma unroll
  for (int r = 0; r < output_tile; ++r) output_transform(out + r * output_tile, 1, t + r * input_tile, 1);
  const TilePosition at = position_of(tiling, tile);
  const float added = bias ? bias[filter] : 0.0f;
#pragma unroll
  for (int r = 0; r < output_tile; ++r)
#pragma unroll
    for (int c = 0; c < output_tile; ++c) {
      const int row = at.y + r, column = at.x + c;
      if (row >= tiling.out_y || column >= tiling.out_x) continue;
      const std::int64_t to =
          ((std::int64_t{at.image} * tiling.out_y + row) * tiling.out_x + column) * filters + filter;
      float value = out[r * output_tile + c] + added;
      if (residual) value += residual[to];
      y[to] = relu && value < 0 ? 0.0f : value;
    }
}

// dg = Gᵀ dU G, where dU = [splits][tile elements][channels][filters] is summed over the splits. accumulate:
// add to the values in dweight.
__global__ void __launch_bounds__(threads)
    transform_weight_gradient(int channels, int filters, int splits, bool accumulate,
                              float* __restrict__ dweight, const float* __restrict__ du) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= channels * filters) return;
  const int channel = i / filters, filter = i % filters;
  const std::int64_t step = std::int64_t{channels} * filters;
  float d[tile_elements], t[18], g[9];
#pragma unroll
  for (int p = 0; p < tile_elements; ++p) d[p] = 0;
  for (int split = 0; split < splits; ++split)
#pragma unroll
    for (int p = 0; p < tile_elements; ++p) d[p] += du[(std::int64_t{split} * tile_elements + p) * step + i];
#pragma unroll
  for (int c = 0; c < input_tile; ++c) filter_transform_transposed(t + c, input_tile, d + c, input_tile);
#pragma unroll
  for (int r = 0; r < 3; ++r) filter_transform_transposed(g + r * 3, 1, t + r * input_tile, 1);
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
    float& to = dweight[(std::int64_t{filter} * 9 + tap) * channels + channel];
    to = accumulate ? to + g[tap] : g[tap];
  }
}

unsigned grid_size(std::int64_t work) {
  return static_cast<unsigned>((work + threads - 1) / threads);
}

// Images are processed in chunks, to limit the memory of their transforms.
constexpr std::int64_t chunk_bytes = std::int64_t{512} << 20;

std::int64_t chunk_images(const Conv2dPlan& plan) {
  const Tiling one = make_tiling(plan, 1, 1);
  const std::int64_t bytes = std::int64_t{one.tiles} * tile_elements * (plan.channels + plan.filters) * 4;
  return std::clamp<std::int64_t>(chunk_bytes / bytes, 1, plan.images);
}

Buffer allocate_floats(std::int64_t count, StreamView stream) {
  return Buffer(static_cast<std::size_t>(count) * sizeof(float), stream);
}
float* floats(const Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}

// c = a · b for `batches` contiguous row-major matrices: a is (rows × inner), or (inner × rows) with
// transpose_a, b is (inner × columns).
struct BatchedProduct {
  const float* a;
  const float* b;
  float* c;
  int rows;
  int columns;
  int inner;
  int batches;
  bool transpose_a = false;
};

// cuBLAS is column-major: it computes cᵀ = bᵀ · aᵀ.
void multiply(const BatchedProduct& p, StreamView stream) {
  const float one = 1, zero = 0;
  const std::int64_t a_stride = std::int64_t{p.rows} * p.inner;
  const std::int64_t b_stride = std::int64_t{p.inner} * p.columns;
  const std::int64_t c_stride = std::int64_t{p.rows} * p.columns;
  cublas_check(cublasGemmStridedBatchedEx(
                   cublas_handle(stream), CUBLAS_OP_N, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p.columns,
                   p.rows, p.inner, &one, p.b, CUDA_R_32F, p.columns, b_stride, p.a, CUDA_R_32F,
                   p.transpose_a ? p.rows : p.inner, a_stride, &zero, p.c, CUDA_R_32F, p.columns, c_stride,
                   p.batches, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
}

void convolve(const Conv2dPlan& plan, float* y, const float* x, const float* weight, bool transposed,
              const Conv2dEpilogue& epilogue, StreamView stream) {
  const cudaStream_t launch_stream = cuda_stream(stream);
  const int channels = static_cast<int>(plan.channels), filters = static_cast<int>(plan.filters);
  const Buffer u = allocate_floats(std::int64_t{tile_elements} * channels * filters, stream);
  transform_filters<<<grid_size(channels * filters), threads, 0, launch_stream>>>(
      channels, filters, transposed, floats(u), weight);
  check_launch("winograd filters");
  const std::int64_t max_images = chunk_images(plan), image_x = plan.in.y * plan.in.x * channels,
                     image_y = plan.out.y * plan.out.x * filters;
  const Tiling whole = make_tiling(plan, max_images, 1);
  const Buffer v = allocate_floats(std::int64_t{whole.tiles} * tile_elements * channels, stream);
  const Buffer m = allocate_floats(std::int64_t{whole.tiles} * tile_elements * filters, stream);
  const auto* residual = reinterpret_cast<const float*>(epilogue.residual);
  for (std::int64_t first = 0; first < plan.images; first += max_images) {
    const Tiling tiling = make_tiling(plan, std::min(max_images, plan.images - first), 1);
    transform_inputs<<<grid_size(std::int64_t{tiling.tiles} * channels), threads, 0, launch_stream>>>(
        tiling, channels, floats(v), x + first * image_x);
    check_launch("winograd patches");
    multiply({.a = floats(v),
              .b = floats(u),
              .c = floats(m),
              .rows = tiling.tiles,
              .columns = filters,
              .inner = channels,
              .batches = tile_elements},
             stream);
    transform_outputs<<<grid_size(std::int64_t{tiling.tiles} * filters), threads, 0, launch_stream>>>(
        tiling, filters, y + first * image_y, floats(m), reinterpret_cast<const float*>(epilogue.bias),
        residual ? residual + first * image_y : nullptr, epilogue.activation == FusedActivation::relu);
    check_launch("winograd output_tile");
  }
}

}  // namespace

void winograd_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                     const Conv2dEpilogue& epilogue, StreamView stream) {
  convolve(plan, reinterpret_cast<float*>(y), reinterpret_cast<const float*>(x),
           reinterpret_cast<const float*>(weight), false, epilogue, stream);
}

// A convolution of dy with the rotated filters; a padding of p becomes 2 − p.
void winograd_input_gradient(const Conv2dPlan& plan, std::byte* dx, const std::byte* dy,
                             const std::byte* weight, StreamView stream) {
  Conv2dPlan back = plan;
  std::swap(back.channels, back.filters);
  std::swap(back.in, back.out);
  back.window.padding = {2 - plan.window.padding.y, 2 - plan.window.padding.x};
  convolve(back, reinterpret_cast<float*>(dx), reinterpret_cast<const float*>(dy),
           reinterpret_cast<const float*>(weight), true, {}, stream);
}

void winograd_weight_gradient(const Conv2dPlan& plan, std::byte* dweight, const std::byte* dy,
                              const std::byte* x, StreamView stream) {
  const cudaStream_t launch_stream = cuda_stream(stream);
  const int channels = static_cast<int>(plan.channels), filters = static_cast<int>(plan.filters);
  const std::int64_t max_images = chunk_images(plan), image_x = plan.in.y * plan.in.x * channels,
                     image_y = plan.out.y * plan.out.x * filters;
  // The products are small and their sums long: splitting the sums keeps every multiprocessor busy.
  const int products = tile_elements * ((channels + 63) / 64) * ((filters + 63) / 64);
  const int splits = std::clamp(4 * multiprocessor_count(stream.device) / products, 1, 16);
  const Tiling whole = make_tiling(plan, max_images, splits);
  const std::int64_t tiles = std::int64_t{whole.split_tiles} * splits,
                     step = std::int64_t{channels} * filters;
  const Buffer v = allocate_floats(tiles * tile_elements * channels, stream),
               m = allocate_floats(tiles * tile_elements * filters, stream);
  const Buffer du = allocate_floats(std::int64_t{splits} * tile_elements * step, stream);
  for (std::int64_t first = 0; first < plan.images; first += max_images) {
    const Tiling tiling = make_tiling(plan, std::min(max_images, plan.images - first), splits);
    const std::int64_t padded = std::int64_t{tiling.split_tiles} * splits;
    transform_inputs<<<grid_size(padded * channels), threads, 0, launch_stream>>>(
        tiling, channels, floats(v), reinterpret_cast<const float*>(x) + first * image_x);
    check_launch("winograd patches");
    transform_gradients<<<grid_size(padded * filters), threads, 0, launch_stream>>>(
        tiling, filters, floats(m), reinterpret_cast<const float*>(dy) + first * image_y);
    check_launch("winograd gradients");
    multiply({.a = floats(v),
              .b = floats(m),
              .c = floats(du),
              .rows = channels,
              .columns = filters,
              .inner = tiling.split_tiles,
              .batches = tile_elements * splits,
              .transpose_a = true},
             stream);
    transform_weight_gradient<<<grid_size(step), threads, 0, launch_stream>>>(
        channels, filters, splits, first > 0, reinterpret_cast<float*>(dweight), floats(du));
    check_launch("winograd weight gradient");
  }
}

}  // namespace tandem::detail
