#include "tandem/ops/conv/quantized_tile_conv.cuh"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tandem/ops/conv/quantized_epilogue.cuh"
#include "tandem/ops/hopper.cuh"

namespace tandem::detail {
namespace {

// The convolution as a product: rows are pixels of the result, in boxes of up to 64, columns are filters, and
// the sum goes over taps and channels, in chunks of 64 or 128 channels of one tap. A block has tiles of
// `groups` boxes and `columns` filters; each box belongs to one warpgroup, from its products to its results.
// Two more warps start the copies.
constexpr int box_rows = 64, group_threads = 128, max_groups = 3, max_stages = 8, max_slots = 4;
constexpr int max_threads = max_groups * group_threads + 64;
constexpr int max_shared_bytes = 227 * 1024;

struct Shape4 {
  int x, y, n;
};

struct Problem {
  int boxes;      // in all
  Shape4 counts;  // boxes along each axis
  Shape4 box;     // pixels along each axis
  int stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  int kernel_y, kernel_x, channels;
  int column_tiles;
  int groups, stages, slots;
  bool is_resident;  // the weight of a tile's columns stays in shared memory
  const float* scale;
  const float* bias;
  QuantizedEpilogue epilogue;
};

// What lies where in shared memory, in bytes.
struct Places {
  int stages, slots, constants, barriers, end;
  int stage_bytes, group_slot_bytes;
};

// The numbers of a column that thread q of four has are in sequence, with a gap that avoids bank conflicts.
constexpr int constants_pitch(int columns) {
  return columns / 4 + 4;
}

__host__ __device__ Places places_of(const Problem& p, int columns, int chunk) {
  const int chunks = p.kernel_y * p.kernel_x * (p.channels / chunk);
  Places at{};
  at.stage_bytes = p.groups * box_rows * chunk + (p.is_resident ? 0 : columns * chunk);
  at.group_slot_bytes = box_rows * columns;
  at.stages = p.is_resident ? chunks * columns * chunk : 0;
  at.slots = at.stages + p.stages * at.stage_bytes;
  at.constants = at.slots + p.groups * p.slots * at.group_slot_bytes;
  at.barriers = at.constants + 2 * 4 * constants_pitch(columns) * 4;
  at.end = at.barriers + (2 * max_stages + 2 * max_groups * max_slots + 1) * 8;
  return at;
}

int columns_for(std::int64_t filters) {
  return filters % 128 == 0 ? 128 : 64;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

struct Barriers {
  std::uint64_t full[max_stages], empty[max_stages];
  std::uint64_t slot_full[max_groups][max_slots], slot_empty[max_groups][max_slots];
  std::uint64_t weight;
};

// sum += A · Bᵀ for 64 rows of A, 64 or 128 rows of B and 32 bytes of each.
__device__ void multiply(int (&sum)[32], std::uint64_t a, std::uint64_t b) {
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

__device__ void multiply(int (&sum)[64], std::uint64_t a, std::uint64_t b) {
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
__device__ Corner corner_of(const Problem& p, int box, int column) {
  const int line = box / p.counts.x, image = line / p.counts.y;
  return {column, (box - line * p.counts.x) * p.box.x, (line - image * p.counts.y) * p.box.y,
          image * p.box.n};
}

// Copies images and weight: one thread.
template <int columns, int chunk>
__device__ void copy_operands(const Problem& p, const Places& at, std::uint32_t memory, Barriers& barriers,
                              const CUtensorMap* x, const CUtensorMap* weight, int column_tile, int first,
                              int step) {
  const int chunks_per_tap = p.channels / chunk;
  const int box_bytes = p.box.x * p.box.y * p.box.n * chunk;
  if (p.is_resident) {
    const int chunks = p.kernel_y * p.kernel_x * chunks_per_tap;
    barrier_expect_bytes(&barriers.weight, chunks * columns * chunk);
    for (int i = 0; i < chunks; ++i)
      fetch_2d(weight, memory + i * columns * chunk, &barriers.weight, i * chunk, column_tile * columns);
  }
  int stage = 0, phase = 0;
  for (int box = first; box < p.boxes; box += step) {
    Corner corners[max_groups];
    for (int g = 0; g < max_groups; ++g) {
      corners[g] = corner_of(p, box + g, 0);
      corners[g].x = corners[g].x * p.stride_x - p.padding_x;
      corners[g].y = corners[g].y * p.stride_y - p.padding_y;
    }
    int weight_column = 0;
    for (int ky = 0; ky < p.kernel_y; ++ky)
      for (int kx = 0; kx < p.kernel_x; ++kx)
        for (int c = 0; c < chunks_per_tap; ++c, weight_column += chunk) {
          barrier_wait(&barriers.empty[stage], phase ^ 1);
          std::uint64_t* const full = &barriers.full[stage];
          const std::uint32_t to = memory + at.stages + stage * at.stage_bytes;
          barrier_expect_bytes(full, p.groups * box_bytes + (p.is_resident ? 0 : columns * chunk));
#pragma unroll
          for (int g = 0; g < max_groups; ++g)
            if (g < p.groups)
              fetch_4d(x, to + g * box_rows * chunk, full,
                       {c * chunk, corners[g].x + kx * p.dilation_x, corners[g].y + ky * p.dilation_y,
                        corners[g].n});
          if (!p.is_resident)
            fetch_2d(weight, to + p.groups * box_rows * chunk, full, weight_column, column_tile * columns);
          if (++stage == p.stages) {
            stage = 0;
            phase ^= 1;
          }
        }
  }
}

// Copies residuals into the slots of results: one thread.
template <int columns>
__device__ void copy_residuals(const Problem& p, const Places& at, std::uint32_t memory, Barriers& barriers,
                               const CUtensorMap* residual, int column_tile, int first, int step) {
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
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * below;
      const int swizzle = columns == 128 ? row % 8 : row / 2 % 4;
      auto* const bytes = reinterpret_cast<uint4*>(slot + row * columns + ((vector ^ swizzle) * 16));
      uint4 stored{};
      if constexpr (has_residual) stored = *bytes;
      const std::uint32_t words[4] = {stored.x, stored.y, stored.z, stored.w};
      std::uint32_t results[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const float4 scale = *reinterpret_cast<const float4*>(scales + part * 16 + w * 4),
                     shift = *reinterpret_cast<const float4*>(shifts + part * 16 + w * 4);
        const float scale_of[4] = {scale.x, scale.y, scale.z, scale.w},
                    shift_of[4] = {shift.x, shift.y, shift.z, shift.w};
        float value[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int element = w * 4 + i;  // of the 16
          const int at = (part * 8 + element / 2) * 4 + below * 2 + element % 2;
          value[i] = __fmaf_rn(value_of_sum<is_bounded>(sum[at]), scale_of[i], shift_of[i]);
          if constexpr (has_residual)
            value[i] = __fmaf_rn(byte_of(words[w], i), epilogue.residual_scale, value[i]);
        }
        results[w] = rounded_bytes<is_bounded>(value);
      }
      *bytes = {results[0], results[1], results[2], results[3]};
    }
  }
}

#endif

template <int columns, int chunk, bool has_residual, bool is_bounded>
__global__ void __launch_bounds__(max_threads, 1)
    convolve(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap weight,
             const __grid_constant__ CUtensorMap residual, const __grid_constant__ CUtensorMap y,
             const __grid_constant__ Problem p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t raw[];
  auto* const base = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) &
                                                      ~std::uintptr_t{1023});
  const std::uint32_t memory = shared_address(base);
  const Places at = places_of(p, columns, chunk);
  auto& barriers = *reinterpret_cast<Barriers*>(base + at.barriers);
  auto* const constants = reinterpret_cast<float*>(base + at.constants);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int column_tile = static_cast<int>(blockIdx.x) % p.column_tiles;
  const int first = static_cast<int>(blockIdx.x) / p.column_tiles * p.groups;
  const int step = static_cast<int>(gridDim.x) / p.column_tiles * p.groups;

  if (thread == 0) {
    for (int s = 0; s < max_stages; ++s) {
      barrier_init(&barriers.full[s], 1);
      barrier_init(&barriers.empty[s], p.groups);
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
    const int per_quarter = columns / 4, filter = column_tile * columns + thread;
    const int to = thread / per_quarter * constants_pitch(columns) + thread % per_quarter;
    const ColumnNumbers numbers = column_numbers(p.epilogue, p.scale[filter], p.bias[filter]);
    constants[to] = numbers.scale;
    constants[to + 4 * constants_pitch(columns)] = numbers.shift;
  }
  __syncthreads();

  const int group = thread / group_threads;
  if (group == p.groups) {
    if (lane != 0) return;
    if (warp == p.groups * 4)
      copy_operands<columns, chunk>(p, at, memory, barriers, &x, &weight, column_tile, first, step);
    else if (has_residual)
      copy_residuals<columns>(p, at, memory, barriers, &residual, column_tile, first, step);
    return;
  }

  const int group_thread = thread % group_threads;
  const int chunks = p.kernel_y * p.kernel_x * (p.channels / chunk);
  int stage = 0, phase = 0, slot = 0, slot_phase = 0, last_slot = -1;
  if (p.is_resident) barrier_wait(&barriers.weight, 0);
  for (int box = first; box < p.boxes; box += step) {
    int sum[columns / 2];
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sum[i] = first_sum<is_bounded>();
    int previous = -1;
    for (int i = 0; i < chunks; ++i) {
      barrier_wait(&barriers.full[stage], phase);
      const std::uint32_t from = memory + at.stages + stage * at.stage_bytes;
      const std::uint64_t a = swizzled_descriptor<chunk>(from + group * box_rows * chunk),
                          b = swizzled_descriptor<chunk>(p.is_resident ? memory + i * columns * chunk
                                                                       : from + p.groups * box_rows * chunk);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < chunk / 32; ++k) multiply(sum, a + 2 * k, b + 2 * k);
      wgmma_commit();
      wgmma_wait<1>();  // the previous chunk has been multiplied, so its stage is free
      if (previous >= 0 && group_thread == 0) barrier_arrive(&barriers.empty[previous]);
      previous = stage;
      if (++stage == p.stages) {
        stage = 0;
        phase ^= 1;
      }
    }
    wgmma_wait<0>();
    if (group_thread == 0) barrier_arrive(&barriers.empty[previous]);

    const int slot_at = at.slots + (group * p.slots + slot) * at.group_slot_bytes;
    if constexpr (has_residual) barrier_wait(&barriers.slot_full[group][slot], slot_phase);
    finish<columns, has_residual, is_bounded>(p.epilogue, constants, sum, base + slot_at, group_thread);
    publish_shared_writes();
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(group_threads) : "memory");
    if (group_thread == 0) {
      store_4d(&y, memory + slot_at, corner_of(p, box + group, column_tile * columns));
      commit_stores();
      // All stores but this one have been read. Without residuals nothing waits for a slot: there are three
      // or more, and a thread that is two tiles further has met this one at the barrier above since then.
      wait_for_stores<1>();
      if (has_residual && last_slot >= 0) barrier_arrive(&barriers.slot_empty[group][last_slot]);
      last_slot = slot;
    }
    if (++slot == p.slots) {
      slot = 0;
      slot_phase ^= 1;
    }
  }
  if (group_thread == 0) wait_for_stores<0>();
#endif
}

bool encode(CUtensorMap& map, const void* data, const cuuint64_t (&sizes)[4], const Shape4& box, int width,
            int stride_x, int stride_y) {
  const cuuint64_t pitch[3] = {sizes[0], sizes[0] * sizes[1], sizes[0] * sizes[1] * sizes[2]};
  const cuuint32_t boxes[4] = {static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(box.x * stride_x),
                               static_cast<cuuint32_t>(box.y * stride_y), static_cast<cuuint32_t>(box.n)};
  const cuuint32_t step[4] = {1, static_cast<cuuint32_t>(stride_x), static_cast<cuuint32_t>(stride_y), 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, const_cast<void*>(data), sizes, pitch,
                              boxes, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              width == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool encode_weight(CUtensorMap& map, const void* data, std::int64_t filters, std::int64_t depth, int columns,
                   int chunk) {
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

int parts(std::int64_t size, std::int64_t of) {
  return static_cast<int>((size + of - 1) / of);
}

// The box with which the fewest boxes cover the result; of equal ones the widest.
Shape4 choose_box(std::int64_t width, std::int64_t height, std::int64_t images) {
  Shape4 best{1, 1, 1};
  std::int64_t fewest = INT64_MAX;
  for (int x = static_cast<int>(std::min<std::int64_t>(box_rows, width)); x >= 1; --x)
    for (int y = static_cast<int>(std::min<std::int64_t>(box_rows / x, height)); y >= 1; --y) {
      const int n = static_cast<int>(std::min<std::int64_t>(box_rows / (x * y), images));
      const std::int64_t count = std::int64_t{parts(width, x)} * parts(height, y) * parts(images, n);
      if (count >= fewest) continue;
      fewest = count;
      best = {x, y, n};
    }
  return best;
}

using Kernel = void (*)(CUtensorMap, CUtensorMap, CUtensorMap, CUtensorMap, Problem);

template <int columns, int chunk>
Kernel kernel_for(bool has_residual, bool is_bounded) {
  if (has_residual)
    return is_bounded ? convolve<columns, chunk, true, true> : convolve<columns, chunk, true, false>;
  return is_bounded ? convolve<columns, chunk, false, true> : convolve<columns, chunk, false, false>;
}

Kernel kernel_for(int columns, int chunk, bool has_residual, bool is_bounded) {
  if (columns == 128)
    return chunk == 128 ? kernel_for<128, 128>(has_residual, is_bounded)
                        : kernel_for<128, 64>(has_residual, is_bounded);
  return chunk == 128 ? kernel_for<64, 128>(has_residual, is_bounded)
                      : kernel_for<64, 64>(has_residual, is_bounded);
}

// The number of groups with the fewest rounds of tiles, and as many stages as shared memory has place for.
void choose_tiles(Problem& p, int columns, int chunk, bool has_residual, int multiprocessors) {
  std::int64_t best = INT64_MAX;
  int groups = 0;
  for (const int candidate : {3, 2, 1}) {
    const std::int64_t blocks = std::max(multiprocessors / p.column_tiles, 1);
    const std::int64_t cost = parts(parts(p.boxes, candidate), blocks) * (candidate + 1);
    if (cost >= best) continue;
    best = cost;
    groups = candidate;
  }
  p.groups = groups;
  constexpr int room = max_shared_bytes - 1024;
  for (const bool is_resident : {true, false})
    for (int slots = has_residual ? max_slots : 3; slots >= 3; --slots) {
      p.is_resident = is_resident;
      p.slots = slots;
      p.stages = 0;
      const Places at = places_of(p, columns, chunk);
      p.stages = std::min((room - at.end) / at.stage_bytes, max_stages);
      if (p.stages >= (is_resident || slots == 3 ? 3 : 4) || (!is_resident && slots == 3)) return;
    }
}

}  // namespace

bool is_quantized_tile_conv_applicable(const Shape& weight, const Conv2dOptions& options, Device device) {
  return device.is_cuda() && is_hopper(device) && tensor_map_encoder() && weight[0] % 64 == 0 &&
         weight[3] % 64 == 0 && weight.numel() > 0 && weight[0] <= (1 << 13) &&
         std::max(options.window.stride.y, options.window.stride.x) <= 2;
}

std::vector<std::int8_t> order_tile_weight(const Shape& shape, const std::int8_t* weight) {
  const std::int64_t filters = shape[0], depth = shape.numel() / filters;
  const int columns = columns_for(filters);
  std::vector<std::int8_t> ordered(static_cast<std::size_t>(filters * depth));
  for (std::int64_t n = 0; n < filters; ++n) {
    const std::int64_t first = n / columns * columns;
    std::memcpy(ordered.data() + n * depth,
                weight + (first + filter_of_column(static_cast<int>(n - first), columns)) * depth,
                static_cast<std::size_t>(depth));
  }
  return ordered;
}

bool quantized_tile_conv2d(const QuantizedTask& task, StreamView stream) {
  const Conv2dPlan& plan = task.plan;
  const QuantizedConv2d& conv = task.conv;
  const int columns = columns_for(plan.filters), chunk = plan.channels % 128 == 0 ? 128 : 64;
  const Window& window = plan.window;
  // Pixels of 1×1 windows are a single line.
  const bool is_line = plan.kernel == YX{1, 1} && window.stride == YX{1, 1} && window.padding == YX{0, 0};
  const std::int64_t pixels = plan.images * plan.out.y * plan.out.x;
  if (std::max(pixels, plan.images * plan.in.y * plan.in.x) > INT32_MAX / 2) return false;
  const YX in = is_line ? YX{1, pixels} : plan.in, out = is_line ? YX{1, pixels} : plan.out;
  const std::int64_t images = is_line ? 1 : plan.images;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };

  Problem p{};
  p.box = choose_box(out.x, out.y, images);
  p.counts = {parts(out.x, p.box.x), parts(out.y, p.box.y), parts(images, p.box.n)};
  p.boxes = p.counts.x * p.counts.y * p.counts.n;
  p.stride_y = narrow(window.stride.y), p.stride_x = narrow(window.stride.x);
  p.padding_y = narrow(window.padding.y), p.padding_x = narrow(window.padding.x);
  p.dilation_y = narrow(window.dilation.y), p.dilation_x = narrow(window.dilation.x);
  p.kernel_y = narrow(plan.kernel.y), p.kernel_x = narrow(plan.kernel.x);
  p.channels = narrow(plan.channels);
  p.column_tiles = narrow(plan.filters / columns);
  p.scale = conv.scale.data<float>();
  p.bias = conv.bias.data<float>();
  p.epilogue = epilogue_of(task);
  if (p.epilogue.has_min) return false;
  const int multiprocessors = multiprocessor_count(stream.device);
  choose_tiles(p, columns, chunk, task.residual != nullptr, multiprocessors);

  CUtensorMap x, weight, residual, y;
  const auto size = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t from[4] = {size(plan.channels), size(in.x), size(in.y), size(images)},
                   to[4] = {size(plan.filters), size(out.x), size(out.y), size(images)};
  if (!encode(x, task.x, from, p.box, chunk, p.stride_x, p.stride_y) ||
      !encode_weight(weight, conv.packed.bytes(), plan.filters, plan.kernel.y * plan.kernel.x * plan.channels,
                     columns, chunk) ||
      !encode(y, task.y, to, p.box, columns, 1, 1) ||
      !encode(residual, task.residual ? task.residual : task.y, to, p.box, columns, 1, 1))
    return false;

  const Kernel kernel =
      kernel_for(columns, chunk, task.residual != nullptr, is_bounded_epilogue(conv, p.epilogue));
  const int bytes = places_of(p, columns, chunk).end + 1024;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute");
  const int row_blocks = std::min(std::max(multiprocessors / p.column_tiles, 1), parts(p.boxes, p.groups));
  kernel<<<static_cast<unsigned>(row_blocks * p.column_tiles),
           static_cast<unsigned>(p.groups * group_threads + 64), static_cast<std::size_t>(bytes),
           cuda_stream(stream)>>>(x, weight, residual, y, p);
  check_launch("quantized_conv2d");
  return true;
}

}  // namespace tandem::detail
