// X·Xᵀ on CUDA.
// `cuda-simple`: one block of 1024 threads for every size.
// `cuda`: one block per tile of the lower triangle. X is staged through shared memory, transposed so that a
// thread reads its factors as vectors. A thread accumulates an 8×8 (or 4×4) patch in registers and writes it
// twice: in place and mirrored. tf32 on tensor cores is in xxt_tf32.cu.
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

// 256 threads compute a tile of `size`² results; each computes one `patch`² patch in every quadrant of the
// tile.
template <class T, int tile_size, int patch_size>
struct TilePlan {
  static constexpr int size = tile_size, patch = patch_size, depth = 16, threads = 256;
  static constexpr int vector = 16 / sizeof(T);  // elements per load
  static constexpr int pitch = size + 4;         // row stride of the transposed stage
  static constexpr int loads = size * depth / vector / threads;
  static_assert(size == 2 * 16 * patch && loads * vector * threads == size * depth);
};

template <class Plan, class T>
__global__ void __launch_bounds__(Plan::threads, 2)
    xxt_tiles(std::int64_t rows, std::int64_t columns, bool aligned, const T* __restrict__ x,
              T* __restrict__ out) {
  constexpr int size = Plan::size, patch = Plan::patch, depth = Plan::depth, vector = Plan::vector;
  using Vector = Pack<T, vector>;
  using Patch = Pack<T, patch>;
  __shared__ alignas(16) T stage[2][2][depth][Plan::pitch];  // buffer, operand, k, row

  // Tiles of the lower triangle are numbered row by row: t = i(i+1)/2 + j.
  const std::int64_t t = blockIdx.x;
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
  const T* source[2] = {x + (first[0] + fetch_row) * columns + fetch_k,
                        x + (first[1] + fetch_row) * columns + fetch_k};
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
  fetch(columns);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (std::int64_t columns_left = columns; columns_left > 0; columns_left -= depth, buffer ^= 1) {
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
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const std::int64_t i0 = first[0] + p * size / 2 + row, j0 = first[1] + q * size / 2 + column;
      if (whole) {
        if (i0 >= rows || j0 >= rows) continue;
#pragma unroll
        for (int i = 0; i < patch; ++i) {
          Patch straight, mirrored;
#pragma unroll
          for (int j = 0; j < patch; ++j) {
            straight.value[j] = sum[p][q][i][j];
            mirrored.value[j] = sum[p][q][j][i];
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
            out[(i0 + i) * rows + j0 + j] = sum[p][q][i][j];
            if (tile_i != tile_j) out[(j0 + j) * rows + i0 + i] = sum[p][q][i][j];
          }
      }
    }
}

template <class Plan, class T>
void launch_tiles(const XxtShape& s, const T* x, T* out, StreamView stream) {
  const bool aligned = s.columns % Plan::vector == 0 && is_aligned<Plan::vector>(x);
  const std::int64_t side = (s.rows + Plan::size - 1) / Plan::size;
  xxt_tiles<Plan><<<static_cast<unsigned>(side * (side + 1) / 2), Plan::threads, 0, cuda_stream(stream)>>>(
      s.rows, s.columns, aligned, x, out);
}

template <class T>
void launch_tuned(const XxtShape& s, const T* x, T* out, StreamView stream) {
  if constexpr (sizeof(T) == 4) {
    // Large tiles reuse data more; small ones are needed to occupy every multiprocessor.
    const std::int64_t large_side = (s.rows + 127) / 128;
    if (large_side * (large_side + 1) / 2 >= multiprocessor_count(stream.device))
      return launch_tiles<TilePlan<T, 128, 4>>(s, x, out, stream);
  }
  launch_tiles<TilePlan<T, 64, 2>>(s, x, out, stream);
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
