#include "tandem/ops/conv/small_conv.cuh"

#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

#include "tandem/core/convert.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/conv/cluster_conv.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {
namespace {

// The convolution as a product: rows are pixels of the result, columns are filters, and the sum goes over
// `depth` values, the taps and their channels, in chunks. Two groups of four warps have a half of each chunk
// and, within it, a quarter of the tile.
constexpr int tile_rows = 32, tile_columns = 64, chunk = 64, vector = 8;
constexpr int threads = 256, groups = 2, max_splits = 8, stages = 8;
constexpr int row_bytes = chunk * 2;
constexpr int rows_bytes = tile_rows * row_bytes, stage_bytes = rows_bytes + tile_columns * row_bytes;
constexpr int sum_stride = tile_columns + 4;  // floats; four more than a row against bank conflicts
constexpr int group_sums = tile_rows * sum_stride;
constexpr int shared_bytes = stages * stage_bytes + groups * group_sums * 4;

struct Problem {
  int rows, filters, depth;
  int chunks;
  int channels;
  int in_y, in_x, out_y, out_x;
  int kernel_x;
  int stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
};

struct Tiles {
  int rows, columns, chunks;
};

Tiles tiles_of(const Conv2dPlan& plan) {
  const auto parts = [](std::int64_t size, int of) { return static_cast<int>((size + of - 1) / of); };
  return {parts(plan.images * plan.out.y * plan.out.x, tile_rows), parts(plan.filters, tile_columns),
          parts(plan.kernel.y * plan.kernel.x * plan.channels, chunk)};
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Copies 16 bytes to shared memory, or zeros.
__device__ void copy_vector(unsigned to, const BFloat16* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}

__device__ void load_matrices(std::uint32_t (&to)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}

__device__ void add_product(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                            std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where vector `at` of a row of a chunk lies in shared memory: swizzled, so that eight rows of one column of
// vectors are in different banks.
__device__ unsigned place(int row, int at) {
  return static_cast<unsigned>(row * row_bytes + ((at ^ (row & 7)) * vector * 2));
}

__device__ std::uint32_t to_word(float low, float high) {
  return static_cast<std::uint32_t>(convert<BFloat16>(low).bits) |
         static_cast<std::uint32_t>(convert<BFloat16>(high).bits) << 16;
}

__device__ float relu_if(bool relu, float x) {
  return relu ? activate_value<Backend::cuda, FusedActivation::relu>(x) : x;
}
#endif

// blockIdx.x: the tile of rows, and within it the block's share of the chunks; blockIdx.y: the tile of
// columns. With one warp or two per scheduler latencies count, so addresses advance from chunk to chunk
// without divisions.
__global__ void __launch_bounds__(threads)
    convolve(Problem p, BFloat16* __restrict__ y, const BFloat16* __restrict__ x,
             const BFloat16* __restrict__ weight, const float* __restrict__ bias,
             const BFloat16* __restrict__ residual, bool relu) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  const auto cluster = cooperative_groups::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), split = static_cast<int>(cluster.block_rank());
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int first_row = static_cast<int>(blockIdx.x) / splits * tile_rows,
            first_column = static_cast<int>(blockIdx.y) * tile_columns;
  const int begin = p.chunks * split / splits, count = p.chunks * (split + 1) / splits - begin;
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(memory));
  float* const sums = reinterpret_cast<float*>(memory + stages * stage_bytes);

  // A thread copies one vector of a row of x and of two rows of the weight per chunk.
  constexpr int vectors = chunk / vector;
  static_assert(threads / vectors == tile_rows && 2 * tile_rows == tile_columns);
  const int at = thread % vectors, copied = thread / vectors;
  const unsigned to = shared + place(copied, at);
  int depth_at = begin * chunk + at * vector;  // of the next vector of the weight
  const bool has_filter[2] = {first_column + copied < p.filters,
                              first_column + copied + tile_rows < p.filters};
  const BFloat16* filter[2] = {
      weight + static_cast<std::int64_t>(first_column + copied) * p.depth + depth_at,
      weight + static_cast<std::int64_t>(first_column + copied + tile_rows) * p.depth + depth_at};
  unsigned weight_stage = 0, x_stage = 0;
  const auto load_weight = [&] {
    const unsigned from = to + weight_stage * stage_bytes + rows_bytes;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool exists = has_filter[r] && depth_at < p.depth;
      copy_vector(from + static_cast<unsigned>(r * tile_rows * row_bytes), exists ? filter[r] : weight,
                  exists);
      filter[r] += chunk;
    }
    depth_at += chunk;
    weight_stage = weight_stage + 1 == stages ? 0 : weight_stage + 1;
  };
  const int early = min(count, stages - 1);
  for (int i = 0; i < early; ++i) load_weight();

  const auto row = static_cast<unsigned>(first_row + copied), out_x = static_cast<unsigned>(p.out_x),
             line = row / out_x, image = line / static_cast<unsigned>(p.out_y);
  // A row behind the last one is far above the image.
  const int from_y =
      row < static_cast<unsigned>(p.rows)
          ? static_cast<int>(line - image * static_cast<unsigned>(p.out_y)) * p.stride_y - p.padding_y
          : -(1 << 28);
  const int from_x = static_cast<int>(row - line * out_x) * p.stride_x - p.padding_x;
  const BFloat16* const pixels = x + static_cast<std::int64_t>(image) * p.in_y * p.in_x * p.channels;
  const auto first = static_cast<unsigned>(begin * chunk + at * vector),
             tap = first / static_cast<unsigned>(p.channels), tap_y = tap / static_cast<unsigned>(p.kernel_x);
  int channel = static_cast<int>(first - tap * static_cast<unsigned>(p.channels));
  int in_y = from_y + static_cast<int>(tap_y) * p.dilation_y;
  int column = static_cast<int>(tap - tap_y * static_cast<unsigned>(p.kernel_x));
  int x_depth = static_cast<int>(first);
  const auto load_x = [&] {
    const int in_x = from_x + column * p.dilation_x;
    const bool exists = x_depth < p.depth && static_cast<unsigned>(in_y) < static_cast<unsigned>(p.in_y) &&
                        static_cast<unsigned>(in_x) < static_cast<unsigned>(p.in_x);
    copy_vector(to + x_stage * stage_bytes,
                exists ? pixels + ((in_y * p.in_x + in_x) * p.channels + channel) : x, exists);
    x_depth += chunk;
    for (channel += chunk; channel >= p.channels; channel -= p.channels)
      if (++column == p.kernel_x) {
        column = 0;
        in_y += p.dilation_y;
      }
    x_stage = x_stage + 1 == stages ? 0 : x_stage + 1;
  };

  // One group of copies per chunk, in the order of the chunks; the first has all early copies of the weight.
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) {
    if (i < count) load_x();
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // What is added to the sums. The blocks of a cluster share the tile, four columns at a time.
  constexpr int fours = tile_columns / 4, per_thread = tile_rows * fours / threads;
  float4 added[per_thread];
  std::int64_t stored_at[per_thread];  // < 0: outside of the result
#pragma unroll
  for (int k = 0; k < per_thread; ++k) {
    const int i = (k * splits + split) * threads + thread, out_row = first_row + i / fours,
              out_column = first_column + i % fours * 4;
    const bool exists = i < tile_rows * fours && out_row < p.rows && out_column < p.filters;
    stored_at[k] = exists ? static_cast<std::int64_t>(out_row) * p.filters + out_column : -1;
    added[k] = {};
    if (exists && bias) added[k] = *reinterpret_cast<const float4*>(bias + out_column);
    if (exists && residual) {
      const uint2 words = *reinterpret_cast<const uint2*>(residual + stored_at[k]);
      added[k].x += __uint_as_float(words.x << 16), added[k].y += __uint_as_float(words.x & 0xffff0000u);
      added[k].z += __uint_as_float(words.y << 16), added[k].w += __uint_as_float(words.y & 0xffff0000u);
    }
  }

  const int group = warp / 4, warp_row = warp % 2 * 16, warp_column = warp / 2 % 2 * 32;
  constexpr int steps = chunk / 16 / groups;
  unsigned a_from[steps], b_from[steps][2];
#pragma unroll
  for (int k = 0; k < steps; ++k) {
    const int half = 2 * (group * steps + k);
    a_from[k] = shared + place(warp_row + lane % 16, half + lane / 16);
#pragma unroll
    for (int j = 0; j < 2; ++j)
      b_from[k][j] =
          shared + rows_bytes + place(warp_column + 16 * j + lane / 16 * 8 + lane % 8, half + lane / 8 % 2);
  }
  float sum[4][4] = {};
  unsigned offset = 0;
  for (int i = 0; i < count; ++i) {
    asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
    __syncthreads();
    if (i + stages - 1 < count) {
      load_weight();
      load_x();
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    std::uint32_t a[steps][4], b[steps][2][4];
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      load_matrices(a[k], a_from[k] + offset);
#pragma unroll
      for (int j = 0; j < 2; ++j) load_matrices(b[k][j], b_from[k][j] + offset);
    }
#pragma unroll
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        add_product(sum[j], a[k], b[k][j / 2][j % 2 * 2], b[k][j / 2][j % 2 * 2 + 1]);
    offset = offset + stage_bytes == stages * stage_bytes ? 0 : offset + stage_bytes;
  }

#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(sums + group * group_sums + (warp_row + half * 8 + lane / 4) * sum_stride +
                                 warp_column + 8 * j +
                                 lane % 4 * 2) = {sum[j][2 * half], sum[j][2 * half + 1]};
  cluster.sync();
#pragma unroll
  for (int k = 0; k < per_thread; ++k) {
    if (stored_at[k] < 0) continue;
    const int i = (k * splits + split) * threads + thread, from = i / fours * sum_stride + i % fours * 4;
    for (int s = 0; s < splits; ++s) {
      const float* const other = cluster.map_shared_rank(sums, s) + from;
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        const float4 part = *reinterpret_cast<const float4*>(other + g * group_sums);
        added[k].x += part.x, added[k].y += part.y, added[k].z += part.z, added[k].w += part.w;
      }
    }
  }
  cluster.barrier_arrive();
#pragma unroll
  for (int k = 0; k < per_thread; ++k)
    if (stored_at[k] >= 0)
      *reinterpret_cast<uint2*>(y + stored_at[k]) = {
          to_word(relu_if(relu, added[k].x), relu_if(relu, added[k].y)),
          to_word(relu_if(relu, added[k].z), relu_if(relu, added[k].w))};
  cluster.barrier_wait();  // no block ends while another reads its sums
#endif
}

}  // namespace

bool is_small_conv_profitable(const Conv2dPlan& plan, Device device) {
  if (plan.dtype != DType::bf16 || plan.groups != 1 || plan.channels % vector != 0 ||
      plan.filters % vector != 0)
    return false;
  const Tiles tiles = tiles_of(plan);
  const Conv2dSizes sizes = sizes_of(plan);
  constexpr std::int64_t chunks_per_multiprocessor = 12;
  return std::max(sizes.x, sizes.weight) <= INT32_MAX &&
         std::int64_t{tiles.rows} * tiles.columns * tiles.chunks <=
             multiprocessor_count(device) * chunks_per_multiprocessor &&
         is_hopper(device);
}

void small_conv2d(const Conv2dPlan& plan, std::byte* y, const std::byte* x, const std::byte* weight,
                  const Conv2dEpilogue& epilogue, bool settled, StreamView stream) {
  if (is_cluster_conv_applicable(plan, stream.device) &&
      cluster_conv2d(plan, choose_cluster_tile(plan, multiprocessor_count(stream.device)), y, x, weight,
                     epilogue, settled, stream))
    return;
  const Tiles tiles = tiles_of(plan);
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const Problem p{.rows = narrow(plan.images * plan.out.y * plan.out.x),
                  .filters = narrow(plan.filters),
                  .depth = narrow(plan.kernel.y * plan.kernel.x * plan.channels),
                  .chunks = tiles.chunks,
                  .channels = narrow(plan.channels),
                  .in_y = narrow(plan.in.y),
                  .in_x = narrow(plan.in.x),
                  .out_y = narrow(plan.out.y),
                  .out_x = narrow(plan.out.x),
                  .kernel_x = narrow(plan.kernel.x),
                  .stride_y = narrow(plan.window.stride.y),
                  .stride_x = narrow(plan.window.stride.x),
                  .padding_y = narrow(plan.window.padding.y),
                  .padding_x = narrow(plan.window.padding.x),
                  .dilation_y = narrow(plan.window.dilation.y),
                  .dilation_x = narrow(plan.window.dilation.x)};
  int splits = 1;
  while (splits < max_splits && splits * 4 <= tiles.chunks &&
         2 * splits * tiles.rows * tiles.columns <= multiprocessor_count(stream.device))
    splits *= 2;

  cuda_check(cudaFuncSetAttribute(convolve, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
             "cudaFuncSetAttribute");
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(splits), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(tiles.rows * splits), static_cast<unsigned>(tiles.columns));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = cuda_stream(stream);
  config.attrs = attributes;
  config.numAttrs = settled ? 2 : 1;
  cuda_check(
      cudaLaunchKernelEx(
          &config, convolve, p, reinterpret_cast<BFloat16*>(y), reinterpret_cast<const BFloat16*>(x),
          reinterpret_cast<const BFloat16*>(weight), reinterpret_cast<const float*>(epilogue.bias),
          reinterpret_cast<const BFloat16*>(epilogue.residual), epilogue.activation == FusedActivation::relu),
      "cudaLaunchKernelEx");
}

}  // namespace tandem::detail
