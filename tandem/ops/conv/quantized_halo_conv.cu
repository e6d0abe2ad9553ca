#include "tandem/ops/conv/quantized_halo_conv.cuh"

#include <algorithm>
#include <cstdint>

#include "tandem/ops/conv/quantized_tile.cuh"

namespace tandem::detail {
namespace {

// A box of 8×8 pixels of the result needs 10×10 pixels of the image. In shared memory they are four planes of
// 16 channels, a pixel has 16 bytes of a plane. So the pixels that a tap multiplies are the matrix of wgmma
// without swizzling, for every tap at another address: eight pixels of a line are 128 bytes in sequence, the
// next line begins 160 bytes later.
constexpr int channels = 64, columns = 64, taps = 9, side = 8, halo = side + 2;
constexpr int planes = channels / 16, line_bytes = halo * 16;
constexpr int plane_bytes = halo * line_bytes + 32;  // the gap avoids bank conflicts
constexpr int stage_bytes = planes * plane_bytes, tap_bytes = columns * channels;
constexpr int copy_threads = 64;               // of two warps
[[maybe_unused]] constexpr int in_flight = 5;  // boxes that they fetch at a time
constexpr int stages = 12, slots = 4, groups = max_groups;
constexpr int threads = groups * group_threads + copy_threads + 32;  // the last warp copies residuals

struct Images {
  const std::uint8_t* pixels;
  int n, y, x;
};

constexpr TilePlaces places() {
  TilePlaces at{};
  at.stage_bytes = stage_bytes;
  at.group_slot_bytes = box_rows * columns;
  at.slots = taps * tap_bytes;
  at.stages = at.slots + groups * slots * at.group_slot_bytes;
  at.constants = at.stages + stages * stage_bytes;
  at.barriers = at.constants + 2 * 4 * constants_pitch(columns) * 4;
  at.end = at.barriers + barriers_bytes;
  return at;
}
static_assert(places().end + 1024 <= max_shared_bytes && places().barriers % 8 == 0 && stages <= max_stages &&
              stages % groups == 0);

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// 16 bytes, or zeros where nothing `exists`.
__device__ void copy_16(std::uint32_t to, const std::uint8_t* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}

// Copies of boxes but the last `pending` ones have arrived: passes them on.
template <int pending>
__device__ void pass_on(TileBarriers& barriers, RingPosition& arrived) {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
  publish_shared_writes();
  barrier_arrive(&barriers.full[arrived.stage]);
  arrived.advance(stages);
}

// All threads of the two warps that copy images. Thread t always has plane t % 4.
__device__ void copy_images(const TileProblem& p, const Images& images, std::uint32_t memory,
                            TileBarriers& barriers, int first, int step, int thread) {
  const int plane = thread % planes;
  RingPosition position{0, 0}, arrived{0, 0};
  int started = 0;
  for (int tile = first; tile < p.boxes; tile += step)
    for (int g = 0; g < groups; ++g) {
      const Corner corner = corner_of(p, tile + g, 0);
      barrier_wait(&barriers.empty[position.stage], position.phase ^ 1);
      const std::uint32_t to = memory + places().stages + position.stage * stage_bytes + plane * plane_bytes;
#pragma unroll
      for (int i = 0; i < (halo * halo * planes + copy_threads - 1) / copy_threads; ++i) {
        const int pixel = thread / planes + i * (copy_threads / planes);
        const int y = corner.y - 1 + pixel / halo, x = corner.x - 1 + pixel % halo;
        const bool exists = corner.n < images.n && y >= 0 && y < images.y && x >= 0 && x < images.x;
        const std::int64_t at = (std::int64_t{corner.n} * images.y + y) * images.x + x;
        if (pixel < halo * halo)
          copy_16(to + pixel * 16, images.pixels + (exists ? at * channels + plane * 16 : 0), exists);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      position.advance(stages);
      if (++started > in_flight) pass_on<in_flight>(barriers, arrived);
    }
  for (int i = min(started, in_flight); i > 0; --i) pass_on<0>(barriers, arrived);
}

#endif

template <bool has_residual, bool is_bounded>
__global__ void __launch_bounds__(threads, 1)
    convolve(const __grid_constant__ CUtensorMap weight, const __grid_constant__ CUtensorMap residual,
             const __grid_constant__ CUtensorMap y, const __grid_constant__ TileProblem p,
             const __grid_constant__ Images images) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t raw[];
  auto* const base = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) &
                                                      ~std::uintptr_t{1023});
  const std::uint32_t memory = shared_address(base);
  constexpr TilePlaces at = places();
  auto& barriers = *reinterpret_cast<TileBarriers*>(base + at.barriers);
  const int thread = static_cast<int>(threadIdx.x), group = thread / group_threads;
  const int first = static_cast<int>(blockIdx.x) * groups, step = static_cast<int>(gridDim.x) * groups;
  prepare_block<columns>(p, at, base, barriers, copy_threads, 1, 0);

  if (group == groups) {
    const int copier = thread - groups * group_threads;
    if (copier == 0) {
      barrier_expect_bytes(&barriers.weight, taps * tap_bytes);
      for (int tap = 0; tap < taps; ++tap)
        fetch_2d(&weight, memory + tap * tap_bytes, &barriers.weight, tap * channels, 0);
    }
    if (copier < copy_threads) {
      wait_for_previous_kernel();  // which does not write weights
      copy_images(p, images, memory, barriers, first, step, copier);
    } else if (has_residual && copier == copy_threads) {
      wait_for_previous_kernel();
      copy_residuals<columns>(p, at, memory, barriers, &residual, 0, first, step);
    }
    return;
  }

  RingPosition position{group, 0};
  SlotState slot;
  barrier_wait(&barriers.weight, 0);
  for (int box = first; box < p.boxes; box += step) {
    int sum[columns / 2];
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sum[i] = first_sum<is_bounded>();
    barrier_wait(&barriers.full[position.stage], position.phase);
    const std::uint32_t pixels = memory + at.stages + position.stage * stage_bytes;
    wgmma_fence();
#pragma unroll
    for (int tap = 0; tap < taps; ++tap)
#pragma unroll
      for (int k = 0; k < 2; ++k)  // 32 channels, two planes
        multiply(sum,
                 plain_descriptor(pixels + tap / 3 * line_bytes + tap % 3 * 16 + 2 * k * plane_bytes,
                                  plane_bytes, line_bytes),
                 swizzled_descriptor<channels>(memory + tap * tap_bytes) + 2 * k);
    wgmma_commit();
    wgmma_wait<0>();
    if (thread % group_threads == 0) barrier_arrive(&barriers.empty[position.stage]);
    position.advance(stages, groups);  // those between are other warpgroups'
    write_box<columns, has_residual, is_bounded>(p, at, base, barriers, &y, sum, box + group, 0, slot);
  }
  if (thread % group_threads == 0) wait_for_stores<0>();
#endif
}

using Kernel = void (*)(CUtensorMap, CUtensorMap, CUtensorMap, TileProblem, Images);

Kernel kernel_for(bool has_residual, bool is_bounded) {
  if (has_residual) return is_bounded ? convolve<true, true> : convolve<true, false>;
  return is_bounded ? convolve<false, true> : convolve<false, false>;
}

}  // namespace

bool quantized_halo_conv2d(const QuantizedTask& task, StreamView stream) {
  const Conv2dPlan& plan = task.plan;
  const QuantizedConv2d& conv = task.conv;
  const Window& window = plan.window;
  const bool is_usual = plan.kernel == YX{3, 3} && window.stride == YX{1, 1} && window.padding == YX{1, 1} &&
                        window.dilation == YX{1, 1} && plan.channels == channels && plan.filters == columns;
  const std::int64_t across = parts_of(plan.out.x, side), down = parts_of(plan.out.y, side);
  const std::int64_t pixels = plan.out.y * plan.out.x, covered = across * down * side * side;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(task.x) % 16 == 0;
  if (!is_usual || !is_aligned || 4 * covered > 5 * pixels || plan.images * covered > INT32_MAX / 2)
    return false;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };

  TileProblem p{};
  p.box = {side, side, 1};
  p.counts = {narrow(across), narrow(down), narrow(plan.images)};
  p.boxes = narrow(across * down * plan.images);
  p.column_tiles = 1;
  p.groups = groups, p.stages = stages, p.slots = slots;
  p.scale = conv.scale.data<float>();
  p.bias = conv.bias.data<float>();
  p.epilogue = epilogue_of(task);
  if (p.epilogue.has_min) return false;

  CUtensorMap weight, residual, y;
  TilePixels to{.data = task.y,
                .channels = columns,
                .x = plan.out.x,
                .y = plan.out.y,
                .n = plan.images,
                .step_x = 1,
                .step_y = 1,
                .line = plan.out.x,
                .image = pixels};
  if (!encode_pixels(y, to, p.box, columns, 1, 1) ||
      !encode_weight(weight, conv.packed.bytes(), columns, taps * channels, columns, channels))
    return false;
  if (task.residual) to.data = task.residual;
  if (!encode_pixels(residual, to, p.box, columns, 1, 1)) return false;
  const Images images{.pixels = reinterpret_cast<const std::uint8_t*>(task.x),
                      .n = narrow(plan.images),
                      .y = narrow(plan.in.y),
                      .x = narrow(plan.in.x)};
  launch_early(kernel_for(task.residual != nullptr, is_bounded_epilogue(conv, p.epilogue)),
               std::min(multiprocessor_count(stream.device), parts_of(p.boxes, groups)), threads,
               places().end + 1024, stream, weight, residual, y, p, images);
  return true;
}

}  // namespace tandem::detail
