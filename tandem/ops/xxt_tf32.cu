// X·Xᵀ on Hopper tensor cores (wgmma), tf32 inputs, f32 accumulation. Persistent blocks compute tiles of the
// lower triangle: one producer thread prefetches slices of X through TMA, several stages deep, and two
// warpgroups multiply them from shared memory. Results are written from registers to both triangles while the
// slices of the next tile are being loaded. Other GPUs, and shapes that TMA cannot address, use cuBLAS.
#include <algorithm>
#include <cstdint>

#include "tandem/ops/hopper.cuh"
#include "tandem/ops/xxt_tf32.h"

namespace tandem::detail {
namespace {

constexpr int tile = 128;  // results per side
constexpr int depth = 32;  // columns of X per slice: 128 bytes, the swizzle's width
constexpr int stages = 6;
constexpr int group_threads = 128, groups = 2;         // consumer warpgroups
constexpr int threads = group_threads * (groups + 1);  // plus one producer group
[[maybe_unused]] constexpr int slice_bytes = tile * depth * sizeof(float);

struct Shared {
  alignas(1024) float a[stages][tile * depth];
  alignas(1024) float b[stages][tile * depth];
  std::uint64_t full[stages], empty[stages];
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

struct TileIndex {
  int i, j;
};

// Tiles of the lower triangle are numbered row by row: t = i(i+1)/2 + j.
__device__ TileIndex tile_of(int t) {
  int i = static_cast<int>((sqrtf(8.0f * static_cast<float>(t) + 1.0f) - 1.0f) / 2.0f);
  while (i * (i + 1) / 2 > t) --i;
  while ((i + 1) * (i + 2) / 2 <= t) ++i;
  return {i, t - i * (i + 1) / 2};
}

// sum += A · Bᵀ for 64 rows of A, 128 rows of B and 8 columns.
__device__ void multiply_64x128x8(float (&sum)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1;"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
        "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]),
        "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]),
        "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31]),
        "+f"(sum[32]), "+f"(sum[33]), "+f"(sum[34]), "+f"(sum[35]), "+f"(sum[36]), "+f"(sum[37]),
        "+f"(sum[38]), "+f"(sum[39]), "+f"(sum[40]), "+f"(sum[41]), "+f"(sum[42]), "+f"(sum[43]),
        "+f"(sum[44]), "+f"(sum[45]), "+f"(sum[46]), "+f"(sum[47]), "+f"(sum[48]), "+f"(sum[49]),
        "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]), "+f"(sum[54]), "+f"(sum[55]),
        "+f"(sum[56]), "+f"(sum[57]), "+f"(sum[58]), "+f"(sum[59]), "+f"(sum[60]), "+f"(sum[61]),
        "+f"(sum[62]), "+f"(sum[63])
      : "l"(a), "l"(b));
}

// One slice: four products along the 32 columns, each 32 bytes further.
__device__ void multiply_slice(float (&sum)[64], const float* a, const float* b) {
  const std::uint64_t from_a = swizzled_descriptor<depth * 4>(shared_address(a)),
                      from_b = swizzled_descriptor<depth * 4>(shared_address(b));
#pragma unroll
  for (int k = 0; k < depth / 8; ++k) multiply_64x128x8(sum, from_a + 2 * k, from_b + 2 * k);
}

// The wgmma accumulator layout of a warpgroup's 64 × 128 results: for each 8 columns, thread t holds two
// adjacent elements of row 16·(t/32) + t%32/4 and the two elements 8 rows below.
__device__ void write_tile(const float (&sum)[64], TileIndex index, int group, int thread, int rows,
                           float* out) {
  const int i = index.i * tile + group * 64 + thread / 32 * 16 + thread % 32 / 4;
  const int j = index.j * tile + thread % 4 * 2;
  const std::int64_t pitch = rows;
  const bool mirrored = index.i != index.j;
  const bool paired = rows % 2 == 0;
#pragma unroll
  for (int block = 0; block < 16; ++block)
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = i + below * 8, column = j + block * 8;
      const float left = sum[block * 4 + below * 2], right = sum[block * 4 + below * 2 + 1];
      if (row >= rows) continue;
      if (paired && column + 1 < rows) {
        *reinterpret_cast<float2*>(out + row * pitch + column) = make_float2(left, right);
      } else {
        if (column < rows) out[row * pitch + column] = left;
        if (column + 1 < rows) out[row * pitch + column + 1] = right;
      }
      if (mirrored && column < rows) out[column * pitch + row] = left;
      if (mirrored && column + 1 < rows) out[(column + 1) * pitch + row] = right;
    }
}

#endif

__global__ void __launch_bounds__(threads, 1)
    xxt_tensor_cores(const __grid_constant__ CUtensorMap map, int rows, int columns, int tiles, float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t memory[];
  auto& shared =
      *reinterpret_cast<Shared*>((reinterpret_cast<std::uintptr_t>(memory) + 1023) & ~std::uintptr_t{1023});
  const int slices = (columns + depth - 1) / depth;
  const int role = threadIdx.x / group_threads, thread = threadIdx.x % group_threads;

  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      barrier_init(&shared.full[s], 1);
      barrier_init(&shared.empty[s], groups);
    }
    publish_barriers();
  }
  __syncthreads();

  if (role == groups) {  // producer
    if (thread != 0) return;
    int stage = 0, phase = 0;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      const TileIndex index = tile_of(t);
      for (int slice = 0; slice < slices; ++slice) {
        barrier_wait(&shared.empty[stage], phase ^ 1);
        barrier_expect_bytes(&shared.full[stage], 2 * slice_bytes);
        fetch_2d(&map, shared_address(shared.a[stage]), &shared.full[stage], slice * depth, index.i * tile);
        fetch_2d(&map, shared_address(shared.b[stage]), &shared.full[stage], slice * depth, index.j * tile);
        if (++stage == stages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    return;
  }

  int stage = 0, phase = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    float sum[64] = {};
    int previous = -1;
    for (int slice = 0; slice < slices; ++slice) {
      barrier_wait(&shared.full[stage], phase);
      wgmma_fence();
      multiply_slice(sum, shared.a[stage] + role * 64 * depth, shared.b[stage]);
      wgmma_commit();
      wgmma_wait<1>();  // the previous slice has been multiplied, so its stage is free
      if (previous >= 0 && thread == 0) barrier_arrive(&shared.empty[previous]);
      previous = stage;
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
    }
    wgmma_wait<0>();
    if (previous >= 0 && thread == 0) barrier_arrive(&shared.empty[previous]);
    write_tile(sum, tile_of(t), role, thread, rows, out);
  }
#endif
}

// The TMA descriptor of X; false if it cannot be created.
bool make_tensor_map(const XxtShape& s, const float* x, CUtensorMap& map) {
  const auto encode = tensor_map_encoder();
  if (!encode) return false;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(s.columns), static_cast<cuuint64_t>(s.rows)};
  const cuuint64_t pitch[1] = {static_cast<cuuint64_t>(s.columns) * sizeof(float)};
  const cuuint32_t box[2] = {depth, tile}, step[2] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), sizes, pitch, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

void cublas_product(const XxtShape& s, const float* x, float* out, StreamView stream) {
  // To the column-major cuBLAS, X is its transpose (k × n), and the symmetric result is itself.
  const float one = 1, zero = 0;
  const auto n = static_cast<int>(s.rows), k = static_cast<int>(s.columns);
  cublas_check(cublasGemmEx(cublas_handle(stream), CUBLAS_OP_T, CUBLAS_OP_N, n, n, k, &one, x, CUDA_R_32F, k,
                            x, CUDA_R_32F, k, &zero, out, CUDA_R_32F, n, CUBLAS_COMPUTE_32F_FAST_TF32,
                            CUBLAS_GEMM_DEFAULT),
               "cublasGemmEx");
}

}  // namespace

void xxt_tf32(const XxtShape& s, const float* x, float* out, StreamView stream) {
  const bool addressable = s.columns > 0 && s.columns % 4 == 0 &&
                           reinterpret_cast<std::uintptr_t>(x) % 16 == 0 &&
                           std::max(s.rows, s.columns) < (std::int64_t{1} << 21);
  CUtensorMap map;
  if (!addressable || !is_hopper(stream.device) || !make_tensor_map(s, x, map)) {
    if (s.columns == 0)
      return cuda_check(cudaMemsetAsync(out, 0, s.rows * s.rows * sizeof(float), cuda_stream(stream)),
                        "cudaMemsetAsync");
    return cublas_product(s, x, out, stream);
  }
  constexpr int memory = sizeof(Shared) + 1024;
  cuda_check(cudaFuncSetAttribute(xxt_tensor_cores, cudaFuncAttributeMaxDynamicSharedMemorySize, memory),
             "cudaFuncSetAttribute");
  const auto side = static_cast<int>((s.rows + tile - 1) / tile);
  const int tiles = side * (side + 1) / 2;
  const int blocks = std::min(tiles, multiprocessor_count(stream.device));
  xxt_tensor_cores<<<static_cast<unsigned>(blocks), threads, memory, cuda_stream(stream)>>>(
      map, static_cast<int>(s.rows), static_cast<int>(s.columns), tiles, out);
  check_launch("xxt (tf32)");
}

}  // namespace tandem::detail
