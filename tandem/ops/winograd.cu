#include "tandem/ops/winograd.cuh"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/winograd_transform.h"

namespace tandem {
namespace {

using namespace winograd;

constexpr int threads = 256;

// How results are cut into tiles of 4×4. Tiles are numbered through all images of a chunk and lie in parts of
// `part` tiles each; those beyond the last are zeros.
struct Cut {
  int in_y, in_x, out_y, out_x;  // sizes of what patches are taken from, and of what tiles cover
  int pad_y, pad_x;
  int down, across;
  int images, tiles, part, parts;
};

Cut cut_tiles(const Conv2dPlan& plan, std::int64_t images, int parts) {
  Cut cut{};
  cut.in_y = static_cast<int>(plan.in.y), cut.in_x = static_cast<int>(plan.in.x);
  cut.out_y = static_cast<int>(plan.out.y), cut.out_x = static_cast<int>(plan.out.x);
  cut.pad_y = static_cast<int>(plan.window.padding.y), cut.pad_x = static_cast<int>(plan.window.padding.x);
  cut.down = (cut.out_y + results - 1) / results, cut.across = (cut.out_x + results - 1) / results;
  cut.images = static_cast<int>(images);
  cut.tiles = cut.images * cut.down * cut.across;
  cut.parts = parts;
  cut.part = (cut.tiles + parts - 1) / parts;
  return cut;
}

// Where a tile's result stands.
struct TilePlace {
  int image, y, x;
};

__device__ TilePlace place_of(const Cut& cut, int tile) {
  return {tile / (cut.down * cut.across), tile / cut.across % cut.down * results,
          tile % cut.across * results};
}

// Element (place 0, tile, channel) of [parts][places][part][channels], and the distance between places.
__device__ std::int64_t offset_of(const Cut& cut, int tile, int channel, int channels) {
  return (std::int64_t{tile / cut.part} * places * cut.part + tile % cut.part) * channels + channel;
}

// V = Bᵀ d B for every patch.
__global__ void __launch_bounds__(threads)
    transform_patches(Cut cut, int channels, float* __restrict__ v, const float* __restrict__ x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / channels), channel = static_cast<int>(i % channels);
  if (tile >= cut.part * cut.parts) return;
  float d[places], t[places];
  if (tile < cut.tiles) {
    const TilePlace at = place_of(cut, tile);
    const float* const image = x + std::int64_t{at.image} * cut.in_y * cut.in_x * channels + channel;
#pragma unroll
    for (int r = 0; r < patch; ++r) {
      const int row = at.y + r - cut.pad_y;
#pragma unroll
      for (int c = 0; c < patch; ++c) {
        const int column = at.x + c - cut.pad_x;
        const bool inside = row >= 0 && row < cut.in_y && column >= 0 && column < cut.in_x;
        d[r * patch + c] = inside ? image[(std::int64_t{row} * cut.in_x + column) * channels] : 0.0f;
      }
    }
#pragma unroll
    for (int c = 0; c < patch; ++c) of_patch(t + c, d + c, patch);
#pragma unroll
    for (int r = 0; r < patch; ++r) of_patch(d + r * patch, t + r * patch, 1);
  } else {
#pragma unroll
    for (int p = 0; p < places; ++p) d[p] = 0;
  }
  float* const to = v + offset_of(cut, tile, channel, channels);
  const std::int64_t step = std::int64_t{cut.part} * channels;
#pragma unroll
  for (int p = 0; p < places; ++p) to[p * step] = d[p];
}

// dM = A dy Aᵀ for every tile of a gradient.
__global__ void __launch_bounds__(threads)
    transform_gradients(Cut cut, int channels, float* __restrict__ m, const float* __restrict__ dy) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / channels), channel = static_cast<int>(i % channels);
  if (tile >= cut.part * cut.parts) return;
  float g[results * results], t[patch * results], d[places];
  const TilePlace at = place_of(cut, tile);
  const float* const image = dy + std::int64_t{at.image} * cut.out_y * cut.out_x * channels + channel;
#pragma unroll
  for (int r = 0; r < results; ++r)
#pragma unroll
    for (int c = 0; c < results; ++c) {
      const int row = at.y + r, column = at.x + c;
      const bool inside = tile < cut.tiles && row < cut.out_y && column < cut.out_x;
      g[r * results + c] = inside ? image[(std::int64_t{row} * cut.out_x + column) * channels] : 0.0f;
    }
#pragma unroll
  for (int c = 0; c < results; ++c) of_results(t + c, results, g + c, results);
#pragma unroll
  for (int r = 0; r < patch; ++r) of_results(d + r * patch, 1, t + r * results, 1);
  float* const to = m + offset_of(cut, tile, channel, channels);
  const std::int64_t step = std::int64_t{cut.part} * channels;
#pragma unroll
  for (int p = 0; p < places; ++p) to[p * step] = d[p];
}

// U = G g Gᵀ, [places][channels][filters]; turned: of the filters as the input's gradient needs them, rotated
// by half a turn and with channels and filters exchanged.
__global__ void __launch_bounds__(threads)
    transform_filters(int channels, int filters, bool turned, float* __restrict__ u,
                      const float* __restrict__ weight) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= channels * filters) return;
  const int channel = i / filters, filter = i % filters;
  float g[9], t[18], d[places];
#pragma unroll
  for (int tap = 0; tap < 9; ++tap)
    g[tap] = turned ? weight[(std::int64_t{channel} * 9 + 8 - tap) * filters + filter]
                    : weight[(std::int64_t{filter} * 9 + tap) * channels + channel];
#pragma unroll
  for (int c = 0; c < 3; ++c) of_filter(t + c, 3, g + c, 3);
#pragma unroll
  for (int r = 0; r < patch; ++r) of_filter(d + r * patch, 1, t + r * 3, 1);
#pragma unroll
  for (int p = 0; p < places; ++p) u[std::int64_t{p} * channels * filters + i] = d[p];
}

// y = relu(Aᵀ M A + bias + residual) for every tile.
__global__ void __launch_bounds__(threads)
    transform_results(Cut cut, int filters, float* __restrict__ y, const float* __restrict__ m,
                      const float* __restrict__ bias, const float* __restrict__ residual, bool relu) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const int tile = static_cast<int>(i / filters), filter = static_cast<int>(i % filters);
  if (tile >= cut.tiles) return;
  float d[places], t[results * patch], out[results * results];
  const float* const from = m + offset_of(cut, tile, filter, filters);
  const std::int64_t step = std::int64_t{cut.part} * filters;
#pragma unroll
  for (int p = 0; p < places; ++p) d[p] = from[p * step];
#pragma unroll
  for (int c = 0; c < patch; ++c) to_results(t + c, patch, d + c, patch);
#pragma unroll
  for (int r = 0; r < results; ++r) to_results(out + r * results, 1, t + r * patch, 1);
  const TilePlace at = place_of(cut, tile);
  const float added = bias ? bias[filter] : 0.0f;
#pragma unroll
  for (int r = 0; r < results; ++r)
#pragma unroll
    for (int c = 0; c < results; ++c) {
      const int row = at.y + r, column = at.x + c;
      if (row >= cut.out_y || column >= cut.out_x) continue;
      const std::int64_t to =
          ((std::int64_t{at.image} * cut.out_y + row) * cut.out_x + column) * filters + filter;
      float value = out[r * results + c] + added;
      if (residual) value += residual[to];
      y[to] = relu && value < 0 ? 0.0f : value;
    }
}

// dg = Gᵀ dU G, with dU = [parts][places][channels][filters] summed over the parts; added to what is there.
__global__ void __launch_bounds__(threads)
    transform_weight_gradient(int channels, int filters, int parts, bool adds, float* __restrict__ dweight,
                              const float* __restrict__ du) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= channels * filters) return;
  const int channel = i / filters, filter = i % filters;
  const std::int64_t step = std::int64_t{channels} * filters;
  float d[places], t[18], g[9];
#pragma unroll
  for (int p = 0; p < places; ++p) d[p] = 0;
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int p = 0; p < places; ++p) d[p] += du[(std::int64_t{part} * places + p) * step + i];
#pragma unroll
  for (int c = 0; c < patch; ++c) to_filter(t + c, patch, d + c, patch);
#pragma unroll
  for (int r = 0; r < 3; ++r) to_filter(g + r * 3, 1, t + r * patch, 1);
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
    float& to = dweight[(std::int64_t{filter} * 9 + tap) * channels + channel];
    to = adds ? to + g[tap] : g[tap];
  }
}

unsigned blocks_of(std::int64_t work) {
  return static_cast<unsigned>((work + threads - 1) / threads);
}

// Images are worked on in chunks that keep the transformed ones to so many bytes.
constexpr std::int64_t chunk_bytes = std::int64_t{512} << 20;

std::int64_t images_in_chunk(const Conv2dPlan& plan) {
  const Cut one = cut_tiles(plan, 1, 1);
  const std::int64_t bytes = std::int64_t{one.tiles} * places * (plan.channels + plan.filters) * 4;
  return std::clamp<std::int64_t>(chunk_bytes / bytes, 1, plan.images);
}

Buffer floats(std::int64_t count, StreamView stream) {
  return Buffer(static_cast<std::size_t>(count) * sizeof(float), stream);
}
float* in(const Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}

// Row-major (rows × inner) · (inner × columns) for `batches` matrices one after another, as cuBLAS sees them.
void multiply(const float* a, const float* b, float* c, int rows, int columns, int inner, int batches,
              std::int64_t a_step, std::int64_t b_step, std::int64_t c_step, bool transpose_a,
              StreamView stream) {
  const float one = 1, zero = 0;
  cublas_check(
      cublasGemmStridedBatchedEx(cublas_handle(stream), CUBLAS_OP_N, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                 columns, rows, inner, &one, b, CUDA_R_32F, columns, b_step, a, CUDA_R_32F,
                                 transpose_a ? rows : inner, a_step, &zero, c, CUDA_R_32F, columns, c_step,
                                 batches, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

void convolve(const Conv2dPlan& plan, float* y, const float* x, const float* weight, bool turned,
              const Conv2dEpilogue& epilogue, StreamView stream) {
  const cudaStream_t on = cuda_stream(stream);
  const int channels = static_cast<int>(plan.channels), filters = static_cast<int>(plan.filters);
  const Buffer u = floats(std::int64_t{places} * channels * filters, stream);
  transform_filters<<<blocks_of(channels * filters), threads, 0, on>>>(channels, filters, turned, in(u),
                                                                       weight);
  check_launch("winograd filters");
  const std::int64_t most = images_in_chunk(plan), image_x = plan.in.y * plan.in.x * channels,
                     image_y = plan.out.y * plan.out.x * filters;
  const Cut whole = cut_tiles(plan, most, 1);
  const Buffer v = floats(std::int64_t{whole.tiles} * places * channels, stream);
  const Buffer m = floats(std::int64_t{whole.tiles} * places * filters, stream);
  const auto* residual = reinterpret_cast<const float*>(epilogue.residual);
  for (std::int64_t first = 0; first < plan.images; first += most) {
    const Cut cut = cut_tiles(plan, std::min(most, plan.images - first), 1);
    transform_patches<<<blocks_of(std::int64_t{cut.tiles} * channels), threads, 0, on>>>(cut, channels, in(v),
                                                                                         x + first * image_x);
    check_launch("winograd patches");
    multiply(in(v), in(u), in(m), cut.tiles, filters, channels, places, std::int64_t{cut.tiles} * channels,
             std::int64_t{channels} * filters, std::int64_t{cut.tiles} * filters, false, stream);
    transform_results<<<blocks_of(std::int64_t{cut.tiles} * filters), threads, 0, on>>>(
        cut, filters, y + first * image_y, in(m), reinterpret_cast<const float*>(epilogue.bias),
        residual ? residual + first * image_y : nullptr, epilogue.relu);
    check_launch("winograd results");
  }
}

}  // namespace

void winograd_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                     const Conv2dEpilogue& epilogue, StreamView stream) {
  convolve(plan, reinterpret_cast<float*>(y), reinterpret_cast<const float*>(x),
           reinterpret_cast<const float*>(weight), false, epilogue, stream);
}

// A convolution of dy by the turned filters, with what is left of a padding of 2.
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
  const cudaStream_t on = cuda_stream(stream);
  const int channels = static_cast<int>(plan.channels), filters = static_cast<int>(plan.filters);
  const std::int64_t most = images_in_chunk(plan), image_x = plan.in.y * plan.in.x * channels,
                     image_y = plan.out.y * plan.out.x * filters;
  // The products are small and their sums long: parts of the sums keep every multiprocessor at work.
  const int products = places * ((channels + 63) / 64) * ((filters + 63) / 64);
  const int parts = std::clamp(4 * multiprocessor_count(stream.device) / products, 1, 16);
  const Cut whole = cut_tiles(plan, most, parts);
  const std::int64_t tiles = std::int64_t{whole.part} * parts, step = std::int64_t{channels} * filters;
  const Buffer v = floats(tiles * places * channels, stream), m = floats(tiles * places * filters, stream);
  const Buffer du = floats(std::int64_t{parts} * places * step, stream);
  for (std::int64_t first = 0; first < plan.images; first += most) {
    const Cut cut = cut_tiles(plan, std::min(most, plan.images - first), parts);
    const std::int64_t padded = std::int64_t{cut.part} * parts;
    transform_patches<<<blocks_of(padded * channels), threads, 0, on>>>(
        cut, channels, in(v), reinterpret_cast<const float*>(x) + first * image_x);
    check_launch("winograd patches");
    transform_gradients<<<blocks_of(padded * filters), threads, 0, on>>>(
        cut, filters, in(m), reinterpret_cast<const float*>(dy) + first * image_y);
    check_launch("winograd gradients");
    multiply(in(v), in(m), in(du), channels, filters, cut.part, places * parts,
             std::int64_t{cut.part} * channels, std::int64_t{cut.part} * filters, step, true, stream);
    transform_weight_gradient<<<blocks_of(step), threads, 0, on>>>(channels, filters, parts, first > 0,
                                                                   reinterpret_cast<float*>(dweight), in(du));
    check_launch("winograd weight gradient");
  }
}

}  // namespace tandem
