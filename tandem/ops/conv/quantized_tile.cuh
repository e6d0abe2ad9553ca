// For CUDA sources only: what kernels of 8-bit convolutions on Hopper's tensor cores share. Boxes of up to 64
// pixels of the result, each of a warpgroup, products with `columns` filters, and results and residuals in
// slots of shared memory that TMA copies.
#pragma once

#include <cstdint>

#include "tandem/ops/conv/quantized_epilogue.cuh"
#include "tandem/ops/hopper.cuh"

namespace tandem::detail {

inline constexpr int box_rows = 64, group_threads = 128, max_groups = 3, max_stages = 32, max_slots = 4;
inline constexpr int max_shared_bytes = 227 * 1024;
// Of TileBarriers.
inline constexpr int barriers_bytes = (2 * max_stages + 2 * max_groups * max_slots + 1) * 8;

struct BoxShape {
  int x, y, n;
};

struct TileProblem {
  int boxes;        // in all
  BoxShape counts;  // boxes along each axis
  BoxShape box;     // pixels along each axis
  int stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  int kernel_y, kernel_x, channels;
  int column_tiles;
  int groups, slots;
  int stages;
  bool is_resident;  // the weight of a tile's columns stays in shared memory
  const float* scale;
  const float* bias;
  QuantizedEpilogue epilogue;
};

// What lies where in shared memory, in bytes.
struct TilePlaces {
  int stages, slots, constants, barriers, end;
  int stage_bytes, group_slot_bytes;
};

// The numbers of a column that thread q of four has are in sequence, with a gap that avoids bank conflicts.
constexpr int constants_pitch(int columns) {
  return columns / 4 + 4;
}

inline int parts_of(std::int64_t size, std::int64_t of) {
  return static_cast<int>((size + of - 1) / of);
}

// `step_y` and `step_x` are from one of the pixels to the next, in pixels of a line of `line` pixels and an
// image of `image` pixels.
struct TilePixels {
  const void* data;
  std::int64_t channels, x, y, n;
  std::int64_t step_x, step_y, line, image;
};

inline bool encode_pixels(CUtensorMap& map, const TilePixels& pixels, const BoxShape& box, int width,
                          int stride_x, int stride_y) {
  const auto size = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t sizes[4] = {size(pixels.channels), size(pixels.x), size(pixels.y), size(pixels.n)},
                   pitch[3] = {size(pixels.step_x * pixels.channels),
                               size(pixels.step_y * pixels.line * pixels.channels),
                               size(pixels.image * pixels.channels)};
  const cuuint32_t boxes[4] = {static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(box.x * stride_x),
                               static_cast<cuuint32_t>(box.y * stride_y), static_cast<cuuint32_t>(box.n)};
  const cuuint32_t step[4] = {1, static_cast<cuuint32_t>(stride_x), static_cast<cuuint32_t>(stride_y), 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, const_cast<void*>(pixels.data), sizes,
                              pitch, boxes, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              width == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

inline bool encode_weight(CUtensorMap& map, const void* data, std::int64_t filters, std::int64_t depth,
                          int columns, int chunk) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(filters)};
  const cuuint64_t pitch[1] = {sizes[0]};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(chunk), static_cast<cuuint32_t>(columns)},
                   step[2] = {1, 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(data), sizes, pitch,
                              box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              chunk == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

struct TileBarriers {
  std::uint64_t full[max_stages], empty[max_stages];
  std::uint64_t slot_full[max_groups][max_slots], slot_empty[max_groups][max_slots];
  std::uint64_t weight;
};
static_assert(sizeof(TileBarriers) == barriers_bytes);

// sum += A · Bᵀ for 64 rows of A, 64 or 128 rows of B and 32 bytes of each.
__device__ inline void multiply(int (&sum)[32], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1;"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]),
        "+r"(sum[7]), "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]),
        "+r"(sum[14]), "+r"(sum[15]), "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]),
        "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]), "+r"(sum[24]), "+r"(sum[25]),
        "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31])
      : "l"(a), "l"(b));
}

__device__ inline void multiply(int (&sum)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1;"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]), "+r"(sum[6]),
        "+r"(sum[7]), "+r"(sum[8]), "+r"(sum[9]), "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]),
        "+r"(sum[14]), "+r"(sum[15]), "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]),
        "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]), "+r"(sum[24]), "+r"(sum[25]),
        "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]), "+r"(sum[30]), "+r"(sum[31]),
        "+r"(sum[32]), "+r"(sum[33]), "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]),
        "+r"(sum[38]), "+r"(sum[39]), "+r"(sum[40]), "+r"(sum[41]), "+r"(sum[42]), "+r"(sum[43]),
        "+r"(sum[44]), "+r"(sum[45]), "+r"(sum[46]), "+r"(sum[47]), "+r"(sum[48]), "+r"(sum[49]),
        "+r"(sum[50]), "+r"(sum[51]), "+r"(sum[52]), "+r"(sum[53]), "+r"(sum[54]), "+r"(sum[55]),
        "+r"(sum[56]), "+r"(sum[57]), "+r"(sum[58]), "+r"(sum[59]), "+r"(sum[60]), "+r"(sum[61]),
        "+r"(sum[62]), "+r"(sum[63])
      : "l"(a), "l"(b));
}

// The first pixel of a box, in pixels of the result. Boxes behind the last one are outside of all images.
__device__ inline Corner corner_of(const TileProblem& p, int box, int column) {
  if (p.counts.x == p.boxes) return {column, box * p.box.x, 0, 0};
  const int line = box / p.counts.x, image = line / p.counts.y;
  return {column, (box - line * p.counts.x) * p.box.x, (line - image * p.counts.y) * p.box.y,
          image * p.box.n};
}

// The place in a ring of stages, and the parity of the round. All rounds of a stage must be for the same
// warpgroup or for all of them: a parity does not tell a round from the one before the last.
struct RingPosition {
  int stage, phase;
  __device__ void advance(int stages, int by = 1) {
    stage += by;
    if (stage < stages) return;
    stage -= stages;
    phase ^= 1;
  }
};

// The barriers, of which `full` and `empty` wait for as many arrivals, and the columns' numbers. All threads.
template <int columns>
__device__ void prepare_block(const TileProblem& p, const TilePlaces& at, unsigned char* base,
                              TileBarriers& barriers, int full, int empty, int first_column) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int s = 0; s < max_stages; ++s) {
      barrier_init(&barriers.full[s], full);
      barrier_init(&barriers.empty[s], empty);
    }
    for (int g = 0; g < max_groups; ++g)
      for (int s = 0; s < max_slots; ++s) {
        barrier_init(&barriers.slot_full[g][s], 1);
        barrier_init(&barriers.slot_empty[g][s], 1);
      }
    barrier_init(&barriers.weight, 1);
    publish_barriers();
  }
  if (thread < columns) {
    auto* const constants = reinterpret_cast<float*>(base + at.constants);
    const int per_quarter = columns / 4, filter = first_column + thread;
    const int to = thread / per_quarter * constants_pitch(columns) + thread % per_quarter;
    const ColumnNumbers numbers = column_numbers(p.epilogue, p.scale[filter], p.bias[filter]);
    constants[to] = numbers.scale;
    constants[to + 4 * constants_pitch(columns)] = numbers.shift;
  }
  __syncthreads();
}

// Copies residuals into the slots of results: one thread.
template <int columns>
__device__ void copy_residuals(const TileProblem& p, const TilePlaces& at, std::uint32_t memory,
                               TileBarriers& barriers, const CUtensorMap* residual, int column_tile,
                               int first, int step) {
  const int bytes = p.box.x * p.box.y * p.box.n * columns;
  int slot = 0, phase = 0;
  for (int box = first; box < p.boxes; box += step) {
    for (int g = 0; g < p.groups; ++g) {
      barrier_wait(&barriers.slot_empty[g][slot], phase ^ 1);
      barrier_expect_bytes(&barriers.slot_full[g][slot], bytes);
      fetch_4d(residual, memory + at.slots + (g * p.slots + slot) * at.group_slot_bytes,
               &barriers.slot_full[g][slot], corner_of(p, box + g, column_tile * columns));
    }
    if (++slot == p.slots) {
      slot = 0;
      phase ^= 1;
    }
  }
}

// Writes a warpgroup's results to its slot, where the residual is. The layout of the sums: for each 8
// columns, thread t has two adjacent elements of row 16·(t/32) + t%32/4 and the two elements 8 rows below.
template <int columns, bool has_residual, bool is_bounded>
__device__ void finish(const QuantizedEpilogue& epilogue, const float* constants,
                       const int (&sum)[columns / 2], unsigned char* slot, int thread) {
  const int quarter = thread % 4;
  const float* const scales = constants + quarter * constants_pitch(columns);
  const float* const shifts = scales + 4 * constants_pitch(columns);
#pragma unroll
  for (int part = 0; part < columns / 64; ++part) {
    const int vector = quarter * (columns / 64) + part;  // of 16 bytes
    uint4* bytes[2];                                     // of a row and of the row 8 below
    std::uint32_t words[2][4];
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * below;
      const int swizzle = columns == 128 ? row % 8 : row / 2 % 4;
      bytes[below] = reinterpret_cast<uint4*>(slot + row * columns + ((vector ^ swizzle) * 16));
      if constexpr (has_residual) {
        const uint4 stored = *bytes[below];
        words[below][0] = stored.x, words[below][1] = stored.y;
        words[below][2] = stored.z, words[below][3] = stored.w;
      }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float4 scale = *reinterpret_cast<const float4*>(scales + part * 16 + w * 4),
                   shift = *reinterpret_cast<const float4*>(shifts + part * 16 + w * 4);
      const float scale_of[4] = {scale.x, scale.y, scale.z, scale.w},
                  shift_of[4] = {shift.x, shift.y, shift.z, shift.w};
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        float value[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int element = w * 4 + i;  // of the 16
          const int at = (part * 8 + element / 2) * 4 + below * 2 + element % 2;
          value[i] = __fmaf_rn(value_of_sum<is_bounded>(sum[at]), scale_of[i], shift_of[i]);
          if constexpr (has_residual)
            value[i] = __fmaf_rn(byte_of(words[below][w], i), epilogue.residual_scale, value[i]);
        }
        words[below][w] = rounded_bytes<is_bounded>(value);
      }
    }
#pragma unroll
    for (int below = 0; below < 2; ++below)
      *bytes[below] = {words[below][0], words[below][1], words[below][2], words[below][3]};
  }
}

// The slot of a warpgroup's next box, and the parity of its round.
struct SlotState {
  int slot = 0, phase = 0, last = -1;
};

// Finishes the sums of a warpgroup's box and starts the copy of the results. All threads of the warpgroup.
template <int columns, bool has_residual, bool is_bounded>
__device__ void write_box(const TileProblem& p, const TilePlaces& at, unsigned char* base,
                          TileBarriers& barriers, const CUtensorMap* y, const int (&sum)[columns / 2],
                          int box, int column, SlotState& state) {
  const int group = static_cast<int>(threadIdx.x) / group_threads,
            thread = static_cast<int>(threadIdx.x) % group_threads;
  const int slot_at = at.slots + (group * p.slots + state.slot) * at.group_slot_bytes;
  if constexpr (has_residual) barrier_wait(&barriers.slot_full[group][state.slot], state.phase);
  finish<columns, has_residual, is_bounded>(p.epilogue, reinterpret_cast<const float*>(base + at.constants),
                                            sum, base + slot_at, thread);
  publish_shared_writes();
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(group_threads) : "memory");
  if (thread == 0) {
    store_4d(y, shared_address(base) + slot_at, corner_of(p, box, column));
    commit_stores();
    // All stores but this one have been read. Without residuals nothing waits for a slot: there are three
    // or more, and a thread that is two boxes further has met this one at the barrier above since then.
    wait_for_stores<1>();
    if (has_residual && state.last >= 0) barrier_arrive(&barriers.slot_empty[group][state.last]);
    state.last = state.slot;
  }
  if (++state.slot == p.slots) {
    state.slot = 0;
    state.phase ^= 1;
  }
}

#endif

}  // namespace tandem::detail
