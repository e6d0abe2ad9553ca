#include "tandem/ops/conv/quantized_tile_conv.cuh"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tandem/ops/conv/quantized_tile.cuh"

namespace tandem::detail {
namespace {

// The convolution as a product: rows are pixels of the result, in boxes of up to 64, columns are filters, and
// the sum goes over taps and channels, in chunks of 64 or 128 channels of one tap. A block has tiles of
// `groups` boxes and `columns` filters; each box belongs to one warpgroup, from its products to its results.
// Two more warps start the copies, into a ring of stages that have a chunk of all boxes and, unless it stays
// in shared memory, of the weight. (A ring for each warpgroup, so that they do not wait for each other, made
// some layers 1.1 times as fast and others 1.4 times as slow.)
constexpr int max_threads = max_groups * group_threads + 64;

__host__ __device__ TilePlaces places_of(const TileProblem& p, int columns, int chunk) {
  const int chunks = p.kernel_y * p.kernel_x * (p.channels / chunk);
  TilePlaces at{};
  at.stage_bytes = (p.groups * box_rows + (p.is_resident ? 0 : columns)) * chunk;
  at.group_slot_bytes = box_rows * columns;
  at.stages = p.is_resident ? chunks * columns * chunk : 0;
  at.slots = at.stages + p.stages * at.stage_bytes;
  at.constants = at.slots + p.groups * p.slots * at.group_slot_bytes;
  at.barriers = at.constants + 2 * 4 * constants_pitch(columns) * 4;
  at.end = at.barriers + barriers_bytes;
  return at;
}

int columns_for(std::int64_t filters) {
  return filters % 128 == 0 ? 128 : 64;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Copies images and weight: one thread.
template <int columns, int chunk>
__device__ void copy_operands(const TileProblem& p, const TilePlaces& at, std::uint32_t memory,
                              TileBarriers& barriers, const CUtensorMap* x, const CUtensorMap* weight,
                              int column_tile, int first, int step) {
  const int chunks_per_tap = p.channels / chunk;
  const int box_bytes = p.box.x * p.box.y * p.box.n * chunk;
  if (p.is_resident) {
    const int chunks = p.kernel_y * p.kernel_x * chunks_per_tap;
    barrier_expect_bytes(&barriers.weight, chunks * columns * chunk);
    for (int i = 0; i < chunks; ++i)
      fetch_2d(weight, memory + i * columns * chunk, &barriers.weight, i * chunk, column_tile * columns);
  }
  wait_for_previous_kernel();  // which does not write weights
  RingPosition position{0, 0};
  for (int tile = first; tile < p.boxes; tile += step) {
    Corner corners[max_groups];
#pragma unroll
    for (int b = 0; b < max_groups; ++b)
      if (b < p.groups) {
        corners[b] = corner_of(p, tile + b, 0);
        corners[b].x = corners[b].x * p.stride_x - p.padding_x;
        corners[b].y = corners[b].y * p.stride_y - p.padding_y;
      }
    int weight_column = 0;
    for (int ky = 0; ky < p.kernel_y; ++ky)
      for (int kx = 0; kx < p.kernel_x; ++kx)
        for (int c = 0; c < chunks_per_tap; ++c, weight_column += chunk) {
          barrier_wait(&barriers.empty[position.stage], position.phase ^ 1);
          std::uint64_t* const full = &barriers.full[position.stage];
          const std::uint32_t to = memory + at.stages + position.stage * at.stage_bytes;
          barrier_expect_bytes(full, p.groups * box_bytes + (p.is_resident ? 0 : columns * chunk));
#pragma unroll
          for (int b = 0; b < max_groups; ++b)
            if (b < p.groups)
              fetch_4d(x, to + b * box_rows * chunk, full,
                       {c * chunk, corners[b].x + kx * p.dilation_x, corners[b].y + ky * p.dilation_y,
                        corners[b].n});
          if (!p.is_resident)
            fetch_2d(weight, to + p.groups * box_rows * chunk, full, weight_column, column_tile * columns);
          position.advance(p.stages);
        }
  }
}

#endif

template <int columns, int chunk, bool has_residual, bool is_bounded>
__global__ void __launch_bounds__(max_threads, 1)
    convolve(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap weight,
             const __grid_constant__ CUtensorMap residual, const __grid_constant__ CUtensorMap y,
             const __grid_constant__ TileProblem p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t raw[];
  auto* const base = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) &
                                                      ~std::uintptr_t{1023});
  const std::uint32_t memory = shared_address(base);
  const TilePlaces at = places_of(p, columns, chunk);
  auto& barriers = *reinterpret_cast<TileBarriers*>(base + at.barriers);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int column_tile = static_cast<int>(blockIdx.x) % p.column_tiles;
  const int first = static_cast<int>(blockIdx.x) / p.column_tiles * p.groups;
  const int step = static_cast<int>(gridDim.x) / p.column_tiles * p.groups;

  prepare_block<columns>(p, at, base, barriers, 1, p.groups, column_tile * columns);

  const int group = thread / group_threads;
  if (group == p.groups) {
    if (lane != 0) return;
    if (warp == p.groups * 4) {
      copy_operands<columns, chunk>(p, at, memory, barriers, &x, &weight, column_tile, first, step);
    } else if (has_residual) {
      wait_for_previous_kernel();
      copy_residuals<columns>(p, at, memory, barriers, &residual, column_tile, first, step);
    }
    return;
  }

  const int group_thread = thread % group_threads;
  const int chunks = p.kernel_y * p.kernel_x * (p.channels / chunk);
  RingPosition position{0, 0};
  SlotState slot;
  if (p.is_resident) barrier_wait(&barriers.weight, 0);
  for (int box = first; box < p.boxes; box += step) {
    int sum[columns / 2];
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sum[i] = first_sum<is_bounded>();
    int previous = -1;
    for (int i = 0; i < chunks; ++i) {
      const int stage = position.stage;
      barrier_wait(&barriers.full[stage], position.phase);
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
      position.advance(p.stages);
    }
    wgmma_wait<0>();
    if (group_thread == 0) barrier_arrive(&barriers.empty[previous]);

    write_box<columns, has_residual, is_bounded>(p, at, base, barriers, &y, sum, box + group,
                                                 column_tile * columns, slot);
  }
  if (group_thread == 0) wait_for_stores<0>();
#endif
}

// The box with which the fewest boxes cover the result; of equal ones the widest.
BoxShape choose_box(std::int64_t width, std::int64_t height, std::int64_t images) {
  BoxShape best{1, 1, 1};
  std::int64_t fewest = INT64_MAX;
  for (int x = static_cast<int>(std::min<std::int64_t>(box_rows, width)); x >= 1; --x)
    for (int y = static_cast<int>(std::min<std::int64_t>(box_rows / x, height)); y >= 1; --y) {
      const int n = static_cast<int>(std::min<std::int64_t>(box_rows / (x * y), images));
      const std::int64_t count = std::int64_t{parts_of(width, x)} * parts_of(height, y) * parts_of(images, n);
      if (count >= fewest) continue;
      fewest = count;
      best = {x, y, n};
    }
  return best;
}

using Kernel = void (*)(CUtensorMap, CUtensorMap, CUtensorMap, CUtensorMap, TileProblem);

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
void choose_tiles(TileProblem& p, int columns, int chunk, bool has_residual, int multiprocessors) {
  std::int64_t best = INT64_MAX;
  int groups = 0;
  for (const int candidate : {3, 2, 1}) {
    const std::int64_t blocks = std::max(multiprocessors / p.column_tiles, 1);
    const std::int64_t cost = parts_of(parts_of(p.boxes, candidate), blocks) * (candidate + 1);
    if (cost >= best) continue;
    best = cost;
    groups = candidate;
  }
  p.groups = groups;
  constexpr int room = max_shared_bytes - 1024;
  const auto has_place = [&](bool is_resident, int slots, int enough) {
    p.is_resident = is_resident;
    p.slots = slots;
    p.stages = 0;
    const TilePlaces at = places_of(p, columns, chunk);
    p.stages = std::min((room - at.end) / at.stage_bytes, max_stages);
    return p.stages >= enough;
  };
  for (int slots = has_residual ? max_slots : 3; slots >= 3; --slots)
    if (has_place(true, slots, 3)) return;
  if (!has_residual || !has_place(false, max_slots, 4)) has_place(false, 3, 0);
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
  // Pixels of 1×1 windows are a single line; with a stride they are those of a smaller image.
  const bool is_pointwise = plan.kernel == YX{1, 1} && window.padding == YX{0, 0};
  const bool is_line = is_pointwise && window.stride == YX{1, 1};
  const std::int64_t pixels = plan.images * plan.out.y * plan.out.x;
  if (std::max(pixels, plan.images * plan.in.y * plan.in.x) > INT32_MAX / 2) return false;
  const YX in = is_line ? YX{1, pixels} : is_pointwise ? plan.out : plan.in;
  const YX out = is_line ? YX{1, pixels} : plan.out;
  const YX step = is_pointwise ? window.stride : YX{1, 1}, stride = is_pointwise ? YX{1, 1} : window.stride;
  const std::int64_t images = is_line ? 1 : plan.images;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };

  TileProblem p{};
  p.box = choose_box(out.x, out.y, images);
  p.counts = {parts_of(out.x, p.box.x), parts_of(out.y, p.box.y), parts_of(images, p.box.n)};
  p.boxes = p.counts.x * p.counts.y * p.counts.n;
  p.stride_y = narrow(stride.y), p.stride_x = narrow(stride.x);
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
  const TilePixels from{.data = task.x,
                        .channels = plan.channels,
                        .x = in.x,
                        .y = in.y,
                        .n = images,
                        .step_x = step.x,
                        .step_y = step.y,
                        .line = is_line ? pixels : plan.in.x,
                        .image = is_line ? pixels : plan.in.y * plan.in.x};
  TilePixels to{.data = task.y,
                .channels = plan.filters,
                .x = out.x,
                .y = out.y,
                .n = images,
                .step_x = 1,
                .step_y = 1,
                .line = out.x,
                .image = out.y * out.x};
  if (!encode_pixels(x, from, p.box, chunk, p.stride_x, p.stride_y) ||
      !encode_weight(weight, conv.packed.bytes(), plan.filters, plan.kernel.y * plan.kernel.x * plan.channels,
                     columns, chunk) ||
      !encode_pixels(y, to, p.box, columns, 1, 1))
    return false;
  if (task.residual) to.data = task.residual;
  if (!encode_pixels(residual, to, p.box, columns, 1, 1)) return false;

  const Kernel kernel =
      kernel_for(columns, chunk, task.residual != nullptr, is_bounded_epilogue(conv, p.epilogue));
  const int bytes = places_of(p, columns, chunk).end + 1024;
  const int row_blocks = std::min(std::max(multiprocessors / p.column_tiles, 1), parts_of(p.boxes, p.groups));
  launch_early(kernel, row_blocks * p.column_tiles, p.groups * group_threads + 64, bytes, stream, x, weight,
               residual, y, p);
  return true;
}

}  // namespace tandem::detail
