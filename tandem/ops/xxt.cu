// X·Xᵀ on CUDA.
// `cuda-simple`: one block of 1024 threads for every size.
// `cuda`: one block per tile of the lower triangle. X is staged through shared memory, transposed so that a
// thread reads its factors as vectors. A thread accumulates an 8×8 (or 4×4) patch in registers and writes it
// twice: in place and mirrored. Where tiles are too few to hide latencies, on Hopper the blocks of a cluster
// share the sums of a tile. tf32 on tensor cores is in xxt_tf32.cu.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/pack.cuh"
#include "tandem/ops/xxt_kernel.h"
#include "tandem/ops/xxt_tf32.h"

namespace tandem::detail {
namespace {

constexpr int simple_threads = 1024;

template <class T>
__global__ void xxt_one_block(std::int64_t rows, std::int64_t columns, const T* x, T* out) {
  for (std::int64_t element = threadIdx.x; element < rows * rows; element += simple_threads) {
    const std::int64_t i = element / rows, j = element % rows;
    T sum = 0;
    for (std::int64_t p = 0; p < columns; ++p) sum += x[i * columns + p] * x[j * columns + p];
    out[element] = sum;
  }
}

// The threads of a block compute a tile of `size`² results; each computes one `patch`² patch in every
// quadrant of the tile.
template <class T, int tile_size, int patch_size>
struct TilePlan {
  static constexpr int size = tile_size, patch = patch_size, depth = 16;
  static constexpr int threads = (size / 2 / patch) * (size / 2 / patch);
  static constexpr int vector = 16 / sizeof(T);  // elements per load
  static constexpr int pitch = size + 4;         // row stride of the transposed stage
  static constexpr int loads = size * depth / vector / threads;
  static constexpr int blocks = threads == 64 ? 6 : sizeof(T) == 4 ? 2 : 3;  // per multiprocessor
  static_assert((threads == 64 || threads == 256) && loads * vector * threads == size * depth);
};

// A tile is computed by a cluster of `splits` blocks, which each sum over their part of the columns of X.
template <class Plan, int splits, class T>
__global__ void __launch_bounds__(Plan::threads, Plan::blocks)
    xxt_tiles(std::int64_t rows, std::int64_t columns, bool aligned, const T* __restrict__ x,
              T* __restrict__ out) {
  constexpr int size = Plan::size, patch = Plan::patch, depth = Plan::depth, vector = Plan::vector;
  using Vector = Pack<T, vector>;
  using Patch = Pack<T, patch>;
  __shared__ alignas(16) T stage[2][2][depth][Plan::pitch];  // buffer, operand, k, row
  const int split =
      splits == 1 ? 0 : static_cast<int>(blockIdx.x) % splits;  // the block's place in its cluster

  // Tiles of the lower triangle are numbered row by row: t = i(i+1)/2 + j.
  const std::int64_t t = blockIdx.x / splits;
  auto tile_i = static_cast<std::int64_t>((sqrt(8.0 * static_cast<double>(t) + 1.0) - 1.0) / 2.0);
  while (tile_i * (tile_i + 1) / 2 > t) --tile_i;
  while ((tile_i + 1) * (tile_i + 2) / 2 <= t) ++tile_i;
  const std::int64_t tile_j = t - tile_i * (tile_i + 1) / 2;
  const std::int64_t first[2] = {tile_i * size, tile_j * size};

  // A warp covers 8 × 4 patches, twice in each direction, which avoids bank conflicts.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = (warp / 2 % 2 * 8 + lane / 4) * patch,
            column = ((warp / 4 * 2 + warp % 2) * 4 + lane % 4) * patch;

  // This thread loads `loads` vectors per operand and slice: the same columns of rows `row_step` apart.
  constexpr int pieces = depth / vector, row_step = Plan::threads / pieces;
  const int fetch_row = threadIdx.x / pieces, fetch_k = threadIdx.x % pieces * vector;
  const std::int64_t slices = (columns + depth - 1) / depth, begin = slices * split / splits * depth;
  const std::int64_t end = split == splits - 1 ? columns : slices * (split + 1) / splits * depth;
  const T* source[2] = {x + (first[0] + fetch_row) * columns + begin + fetch_k,
                        x + (first[1] + fetch_row) * columns + begin + fetch_k};
  const int rows_left[2] = {static_cast<int>(min(rows - first[0], std::int64_t{size})) - fetch_row,
                            static_cast<int>(min(rows - first[1], std::int64_t{size})) - fetch_row};
  Vector staged[2][Plan::loads];
  const auto fetch = [&](std::int64_t columns_left) {
#pragma unroll
    for (int operand = 0; operand < 2; ++operand) {
#pragma unroll
      for (int load = 0; load < Plan::loads; ++load) {
        const T* piece = source[operand] + load * row_step * columns;
        const bool exists = load * row_step < rows_left[operand];
        if (aligned) {
          staged[operand][load] = exists && fetch_k < columns_left ? load_pack<vector>(piece) : Vector{};
        } else {
#pragma unroll
          for (int e = 0; e < vector; ++e)
            staged[operand][load].value[e] = exists && fetch_k + e < columns_left ? piece[e] : T{0};
        }
      }
      source[operand] += depth;
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int operand = 0; operand < 2; ++operand)
#pragma unroll
      for (int load = 0; load < Plan::loads; ++load) {
#pragma unroll
        for (int e = 0; e < vector; ++e)
          stage[buffer][operand][fetch_k + e][fetch_row + load * row_step] = staged[operand][load].value[e];
      }
  };

  T sum[2][2][patch][patch] = {};
  fetch(end - begin);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (std::int64_t columns_left = end - begin; columns_left > 0; columns_left -= depth, buffer ^= 1) {
    const bool more = columns_left > depth;
    if (more) fetch(columns_left - depth);
#pragma unroll
    for (int k = 0; k < depth; ++k) {
      Patch a[2], b[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a[half] = load_pack<patch>(&stage[buffer][0][k][half * size / 2 + row]);
        b[half] = load_pack<patch>(&stage[buffer][1][k][half * size / 2 + column]);
      }
#pragma unroll
      for (int p = 0; p < 2; ++p)
#pragma unroll
        for (int q = 0; q < 2; ++q)
#pragma unroll
          for (int i = 0; i < patch; ++i)
#pragma unroll
            for (int j = 0; j < patch; ++j) sum[p][q][i][j] += a[p].value[i] * b[q].value[j];
    }
    if (more) store(buffer ^ 1);
    __syncthreads();
  }

  const bool whole = rows % patch == 0;  // patches do not cross the edge, and result rows are aligned
  const auto write = [&](int quadrant, const T(&value)[patch][patch]) {
    const std::int64_t i0 = first[0] + quadrant / 2 * size / 2 + row,
                       j0 = first[1] + quadrant % 2 * size / 2 + column;
    if (whole) {
      if (i0 >= rows || j0 >= rows) return;
#pragma unroll
      for (int i = 0; i < patch; ++i) {
        Patch straight, mirrored;
#pragma unroll
        for (int j = 0; j < patch; ++j) {
          straight.value[j] = value[i][j];
          mirrored.value[j] = value[j][i];
        }
        store_pack(out + (i0 + i) * rows + j0, straight);
        if (tile_i != tile_j) store_pack(out + (j0 + i) * rows + i0, mirrored);
      }
    } else {
#pragma unroll
      for (int i = 0; i < patch; ++i)
#pragma unroll
        for (int j = 0; j < patch; ++j) {
          if (i0 + i >= rows || j0 + j >= rows) continue;
          out[(i0 + i) * rows + j0 + j] = value[i][j];
          if (tile_i != tile_j) out[(j0 + j) * rows + i0 + i] = value[i][j];
        }
    }
  };
  if constexpr (splits == 1) {
#pragma unroll
    for (int quadrant = 0; quadrant < 4; ++quadrant) write(quadrant, sum[quadrant / 2][quadrant % 2]);
  } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    // Every block leaves its sums in shared memory, then adds those of all blocks for its share of quadrants,
    // always in the same order.
    struct alignas(16) Sums {
      T value[patch][patch];
    };
    static_assert(sizeof(Sums) * 4 * Plan::threads <= sizeof(stage));
    Sums* const own = reinterpret_cast<Sums*>(stage) + threadIdx.x;
#pragma unroll
    for (int quadrant = 0; quadrant < 4; ++quadrant)
#pragma unroll
      for (int i = 0; i < patch; ++i)
#pragma unroll
        for (int j = 0; j < patch; ++j)
          own[quadrant * Plan::threads].value[i][j] = sum[quadrant / 2][quadrant % 2][i][j];
    const auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
#pragma unroll
    for (int share = 0; share < 4 / splits; ++share) {
      const int quadrant = split * (4 / splits) + share;
      T total[patch][patch] = {};
#pragma unroll
      for (int other = 0; other < splits; ++other) {
        const Sums part = cluster.map_shared_rank(own, other)[quadrant * Plan::threads];
#pragma unroll
        for (int i = 0; i < patch; ++i)
#pragma unroll
          for (int j = 0; j < patch; ++j) total[i][j] += part.value[i][j];
      }
      write(quadrant, total);
    }
    cluster.sync();  // no block ends while another reads its sums
#endif
  }
}

template <class Plan, int splits, class T>
void launch_tiles(const XxtShape& s, const T* x, T* out, StreamView stream) {
  const bool aligned = s.columns % Plan::vector == 0 && is_aligned<Plan::vector>(x);
  const std::int64_t side = (s.rows + Plan::size - 1) / Plan::size;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {splits, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(side * (side + 1) / 2 * splits));
  config.blockDim = dim3(Plan::threads);
  config.stream = cuda_stream(stream);
  config.attrs = &cluster;
  config.numAttrs = splits > 1 ? 1 : 0;
  cuda_check(cudaLaunchKernelEx(&config, xxt_tiles<Plan, splits, T>, s.rows, s.columns, aligned, x, out),
             "cudaLaunchKernelEx");
}

template <class T>
void launch_tuned(const XxtShape& s, const T* x, T* out, StreamView stream) {
  const std::int64_t processors = multiprocessor_count(stream.device);
  const auto tiles = [&](std::int64_t size) {
    const std::int64_t side = (s.rows + size - 1) / size;
    return side * (side + 1) / 2;
  };
  // Large tiles reuse data more; small ones are needed to occupy every multiprocessor.
  if constexpr (sizeof(T) == 4)
    if (tiles(128) >= processors) return launch_tiles<TilePlan<T, 128, 4>, 1>(s, x, out, stream);
  using Small = TilePlan<T, 64, sizeof(T) == 4 ? 4 : 2>;
  constexpr int min_slices = 4;  // per block: fewer do not pay for adding up
  const auto may_split = [&](int splits) {
    return tiles(Small::size) * splits <= Small::blocks * processors &&
           s.columns >= splits * min_slices * Small::depth && is_hopper(stream.device);
  };
  if (may_split(4)) return launch_tiles<Small, 4>(s, x, out, stream);
  if (may_split(2)) return launch_tiles<Small, 2>(s, x, out, stream);
  launch_tiles<Small, 1>(s, x, out, stream);
}

}  // namespace

template <>
void xxt_kernel<Version::cuda_simple>(DType dtype, const XxtShape& s, const std::byte* x, std::byte* out,
                                      StreamView stream) {
  on_dtype(XxtTypes{}, dtype, "xxt", [&]<class T>() {
    xxt_one_block<<<1, simple_threads, 0, cuda_stream(stream)>>>(
        s.rows, s.columns, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(out));
  });
  check_launch("xxt (cuda-simple)");
}

template <>
void xxt_kernel<Version::cuda>(DType dtype, const XxtShape& s, const std::byte* x, std::byte* out,
                               StreamView stream) {
  if (dtype == DType::f32 && s.precision == MatmulPrecision::tf32)
    return xxt_tf32(s, reinterpret_cast<const float*>(x), reinterpret_cast<float*>(out), stream);
  on_dtype(XxtTypes{}, dtype, "xxt", [&]<class T>() {
    launch_tuned(s, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(out), stream);
  });
  check_launch("xxt (cuda)");
}

}  // namespace tandem::detail
