#include "tandem/ops/conv/cluster_conv.cuh"

#include <algorithm>
#include <cstdint>

#include "tandem/core/convert.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/fused_activation_kernel.h"
#include "tandem/ops/hopper.cuh"

namespace tandem::detail {
namespace {

// The convolution as a product: rows are filters, columns are pixels of the result, and the sum goes over
// taps and their channels, in chunks of 64 channels of one tap. One warpgroup multiplies; the first thread of
// one more warp starts the copies into a ring of stages, those of the weight before the kernel before this
// one has ended. Each block of a cluster has a share of the chunks; it sends its sums to the block that adds
// those of a pixel.
constexpr int tile_filters = 64, chunk = 64, consumers = 128, threads = consumers + 32;
constexpr int max_stages = 9, max_splits = 8;
constexpr int fours = tile_filters / 4;  // packs of four sums, of 16 bytes
constexpr int weight_bytes = tile_filters * chunk * 2;

struct Problem {
  int rows, filters;
  int chunks, chunks_per_tap;
  int out_y, out_x;
  int kernel_x;
  int stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  int stages;
  bool relu;
};

struct Barriers {
  std::uint64_t full[max_stages], empty[max_stages], parts;
};

constexpr int stage_bytes_of(int pixels) {
  return weight_bytes + pixels * chunk * 2;
}

// Of which 1023 are for the alignment of the stages.
constexpr int shared_bytes_of(int pixels, int splits, int stages) {
  return 1023 + stages * stage_bytes_of(pixels) + (splits > 1 ? pixels * fours * 16 : 0) +
         static_cast<int>(sizeof(Barriers));
}

// As many stages as have room twice on a multiprocessor, so that blocks of the next kernel start early.
constexpr int stages_for(int pixels, int splits, int chunks) {
  constexpr int room = (228 - 2) * 1024 / 2;
  return std::min({(room - shared_bytes_of(pixels, splits, 0)) / stage_bytes_of(pixels), max_stages, chunks});
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// `pixels` pixels from `corner` on, along lines and from image to image, of the tap at (tap_x, tap_y).
__device__ void fetch_window(const CUtensorMap* map, std::uint32_t to, std::uint64_t* barrier,
                             const Corner& corner, int tap_x, int tap_y) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
      "l"(map), "r"(shared_address(barrier)), "r"(corner.c), "r"(corner.x), "r"(corner.y), "r"(corner.n),
      "h"(static_cast<std::uint16_t>(tap_x)), "h"(static_cast<std::uint16_t>(tap_y))
      : "memory");
}

__device__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// sum += A · Bᵀ for 64 rows of A, 16 or 32 rows of B and 16 values of each.
__device__ void multiply(float (&sum)[8], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, "
      "1, 0, 0;"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
        "+f"(sum[7])
      : "l"(a), "l"(b));
}

__device__ void multiply(float (&sum)[16], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
        "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15])
      : "l"(a), "l"(b));
}

// The address of this block's `address` in the block of that rank.
__device__ std::uint32_t address_in(std::uint32_t address, int rank) {
  std::uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Writes to shared memory of a block of the cluster, whose barrier counts the bytes.
__device__ void send(std::uint32_t to, const float4& value, std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}

// The threads of a warp hold two pixels of rows of eight filters; afterwards four filters of one pixel.
// `low` and `high`: pixels 0 to 7 and 8 to 15. Of lane l it is pixel pixel_of<16>(l % 16) and filters
// 4·(l / 16) on.
__device__ float4 transpose(float2 low, float2 high, int lane) {
  const bool odd = lane & 4, upper = lane & 8;
  const auto swap = [](float value, int mask) { return __shfl_xor_sync(~0u, value, mask); };
  const float from_low = swap(odd ? low.x : low.y, 4), from_high = swap(odd ? high.x : high.y, 4);
  const float2 first = odd ? float2{from_low, low.y} : float2{low.x, from_low},
               second = odd ? float2{from_high, high.y} : float2{high.x, from_high};
  const float2 sent = upper ? first : second, kept = upper ? second : first;
  const float2 got{swap(sent.x, 8), swap(sent.y, 8)};
  return upper ? float4{got.x, got.y, kept.x, kept.y} : float4{kept.x, kept.y, got.x, got.y};
}

// The number of a lane among those whose pixels belong to the same block, which has 16, 8 or 4 of the 16.
template <int pixels>
__device__ int place_of(int lane) {
  if constexpr (pixels == 16) return lane;
  if constexpr (pixels == 8) return lane % 8 + lane / 16 * 8;
  return lane % 2 + lane / 4 % 2 * 2 + lane / 16 * 4;
}
// The pixel, of those of the block, that the lane with number `at` has; `at` is less than `pixels`.
template <int pixels>
__device__ int pixel_of(int at) {
  constexpr int pairs = pixels < 8 ? pixels / 2 : 4;
  return at / 8 * 8 + at % pairs * 2 + at / pairs % 2;
}

__device__ std::uint32_t to_word(float low, float high) {
  return static_cast<std::uint32_t>(convert<BFloat16>(low).bits) |
         static_cast<std::uint32_t>(convert<BFloat16>(high).bits) << 16;
}

__device__ float relu_if(bool relu, float x) {
  return relu ? activate_value<Backend::cuda, FusedActivation::relu>(x) : x;
}

__device__ void add(float4& sum, const float4& value) {
  sum.x += value.x, sum.y += value.y, sum.z += value.z, sum.w += value.w;
}

// Four filters of a pixel of the result.
struct Output {
  int at;  // < 0: outside of the result
  float4 added;

  __device__ void place(const Problem& p, int row, int filter) {
    at = row < p.rows && filter < p.filters ? row * p.filters + filter : -1;
  }
  __device__ void add_bias(const float* bias, int filter) {
    added = bias && at >= 0 ? *reinterpret_cast<const float4*>(bias + filter) : float4{};
  }
  __device__ void add_residual(const BFloat16* residual) {
    if (at < 0) return;
    const uint2 words = __ldcg(reinterpret_cast<const uint2*>(residual + at));
    add(added, {__uint_as_float(words.x << 16), __uint_as_float(words.x & 0xffff0000u),
                __uint_as_float(words.y << 16), __uint_as_float(words.y & 0xffff0000u)});
  }
  __device__ void store(BFloat16* y, const float4& sum, bool relu) {
    add(added, sum);
    if (at >= 0)
      *reinterpret_cast<uint2*>(y + at) = {to_word(relu_if(relu, added.x), relu_if(relu, added.y)),
                                           to_word(relu_if(relu, added.z), relu_if(relu, added.w))};
  }
};

// Starts the copies of `count` chunks from chunk `begin` on: one thread.
template <int pixels>
__device__ void copy_chunks(const Problem& p, std::uint32_t memory, Barriers& barriers, const CUtensorMap* x,
                            const CUtensorMap* weight, int first_row, int first_filter, int begin,
                            int count) {
  constexpr int stage_bytes = stage_bytes_of(pixels);
  const int early = min(count, p.stages);
  for (int i = 0; i < early; ++i) {
    barrier_expect_bytes(&barriers.full[i], stage_bytes);
    fetch_2d(weight, memory + i * stage_bytes, &barriers.full[i], (begin + i) * chunk, first_filter);
  }
  const int line = first_row / p.out_x, image = line / p.out_y, tap = begin / p.chunks_per_tap;
  Corner corner{(begin - tap * p.chunks_per_tap) * chunk,
                (first_row - line * p.out_x) * p.stride_x - p.padding_x,
                (line - image * p.out_y) * p.stride_y - p.padding_y, image};
  int ky = tap / p.kernel_x, kx = tap - ky * p.kernel_x;
  wait_for_previous_kernel();
  for (int i = 0, stage = 0, phase = 0; i < count; ++i) {
    std::uint64_t* const full = &barriers.full[stage];
    const std::uint32_t to = memory + stage * stage_bytes;
    if (i >= early) {
      barrier_wait(&barriers.empty[stage], phase ^ 1);
      barrier_expect_bytes(full, stage_bytes);
      fetch_2d(weight, to, full, (begin + i) * chunk, first_filter);
    }
    fetch_window(x, to + weight_bytes, full, corner, kx * p.dilation_x, ky * p.dilation_y);
    corner.c += chunk;
    if (corner.c == p.chunks_per_tap * chunk) {
      corner.c = 0;
      if (++kx == p.kernel_x) kx = 0, ++ky;
    }
    if (++stage == p.stages) stage = 0, phase ^= 1;
  }
}

template <int pixels>
__device__ void multiply_chunks(const Problem& p, float (&sum)[pixels / 2], std::uint32_t memory,
                                Barriers& barriers, int count) {
  constexpr int stage_bytes = stage_bytes_of(pixels);
#pragma unroll
  for (int i = 0; i < pixels / 2; ++i) sum[i] = 0;
  for (int i = 0, stage = 0, phase = 0; i < count; ++i) {
    barrier_wait(&barriers.full[stage], phase);
    const std::uint64_t a = swizzled_descriptor<chunk * 2>(memory + stage * stage_bytes),
                        b = swizzled_descriptor<chunk * 2>(memory + stage * stage_bytes + weight_bytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < chunk / 16; ++k) multiply(sum, a + 2 * k, b + 2 * k);
    wgmma_commit();
    if (i + p.stages < count) {
      wgmma_wait<0>();
      if (threadIdx.x == 0) barrier_arrive(&barriers.empty[stage]);
    }
    if (++stage == p.stages) stage = 0, phase ^= 1;
  }
  wgmma_wait<0>();
}
#endif

// blockIdx.x: the tile of pixels, and within it the block's share of the chunks; blockIdx.y: that of filters.
template <int pixels, int splits>
__global__ void __launch_bounds__(threads)
    convolve(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap weight,
             const __grid_constant__ Problem p, BFloat16* __restrict__ y, const float* __restrict__ bias,
             const BFloat16* residual) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t raw[];
  auto* const base = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) &
                                                      ~std::uintptr_t{1023});
  const std::uint32_t memory = shared_address(base);
  auto* const parts = reinterpret_cast<float4*>(base + p.stages * stage_bytes_of(pixels));
  auto& barriers = *reinterpret_cast<Barriers*>(parts + (splits > 1 ? pixels * fours : 0));
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int split = static_cast<int>(blockIdx.x) % splits;
  const int first_row = static_cast<int>(blockIdx.x) / splits * pixels,
            first_filter = static_cast<int>(blockIdx.y) * tile_filters;
  const int begin = p.chunks * split / splits, count = p.chunks * (split + 1) / splits - begin;

  if (thread == consumers) {
    prefetch_map(&weight);
    prefetch_map(&x);
    for (int i = 0; i < p.stages; ++i)
      barrier_init(&barriers.full[i], 1), barrier_init(&barriers.empty[i], 1);
    if (splits > 1) {
      barrier_init(&barriers.parts, 1);
      barrier_expect_bytes(&barriers.parts, pixels * fours * 16);
    }
    publish_barriers();
  }
  __syncthreads();
  // The other blocks send nothing before this one has made its barrier.
  if (splits > 1) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");

  if (warp == consumers / 32) {
    if (lane == 0)
      copy_chunks<pixels>(p, memory, barriers, &x, &weight, first_row, first_filter, begin, count);
    return;
  }

  // What this thread writes: sums of its own, or, `own_pixels` of each block, those of all blocks.
  constexpr int own_pixels = pixels / splits, lanes = own_pixels < 16 ? 2 * own_pixels : 32;
  constexpr int outputs = splits == 1 ? pixels / 8 : (own_pixels * fours + consumers - 1) / consumers;
  Output output[outputs];
#pragma unroll
  for (int k = 0; k < outputs; ++k) {
    const int i = splits == 1 ? (k * 4 + warp) * 32 + lane : k * consumers + thread, at = i % lanes;
    const int octet = i / lanes, pixel = pixel_of<lanes / 2>(at % (lanes / 2)) + octet / 8 * 16;
    const int filter = first_filter + octet % 4 * 16 + octet / 4 % 2 * 8 + at / (lanes / 2) * 4;
    output[k].place(p, i < own_pixels * fours ? first_row + split * own_pixels + pixel : p.rows, filter);
    output[k].add_bias(bias, filter);
  }
  wait_for_previous_kernel();
  if (residual)
#pragma unroll
    for (int k = 0; k < outputs; ++k) output[k].add_residual(residual);

  float sum[pixels / 2];
  multiply_chunks<pixels>(p, sum, memory, barriers, count);
  if (splits > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  float4 four[pixels / 8];
#pragma unroll
  for (int k = 0; k < pixels / 8; ++k) {
    const int j = k / 2 * 8 + k % 2 * 2;
    four[k] = transpose({sum[j], sum[j + 1]}, {sum[j + 4], sum[j + 5]}, lane);
  }
#pragma unroll
  for (int k = 0; k < pixels / 8; ++k) {
    if constexpr (splits == 1) {
      output[k].store(y, four[k], p.relu);
    } else {
      const int pixel = k / 2 * 16 + pixel_of<16>(lane % 16), owner = pixel / own_pixels;
      const int at = ((split * 2 + k % 2) * 4 + warp) * lanes + place_of<own_pixels>(lane);
      send(address_in(shared_address(parts + at), owner), four[k],
           address_in(shared_address(&barriers.parts), owner));
    }
  }
  if constexpr (splits > 1) {
    barrier_wait(&barriers.parts, 0);
#pragma unroll
    for (int k = 0; k < outputs; ++k) {
      const int i = k * consumers + thread;
      if (output[k].at < 0) continue;
      float4 total{};
#pragma unroll
      for (int s = 0; s < splits; ++s) add(total, parts[s * own_pixels * fours + i]);
      output[k].store(y, total, p.relu);
    }
  }
#endif
}

auto im2col_encoder() {
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cuda_check(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
    return reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(entry);
  }();
  return encode;
}

// The taps of a line of a window without padding lie in sequence: with few channels they are one tap with the
// channels of all. Its pixels overlap.
Conv2dPlan merge_taps(Conv2dPlan plan) {
  if (plan.channels % chunk == 0 || plan.kernel.x * plan.channels % chunk != 0 || plan.channels % 8 != 0 ||
      plan.window.padding.x != 0 || plan.window.dilation.x != 1)
    return plan;
  plan.channels *= plan.kernel.x;
  plan.in.x -= plan.kernel.x - 1;
  plan.kernel.x = 1;
  return plan;
}

// `plan` has merged taps.
bool encode_images(CUtensorMap& map, const Conv2dPlan& plan, const Conv2dPlan& original, const std::byte* x,
                   int pixels) {
  const auto size = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const Window& window = plan.window;
  const cuuint64_t sizes[4] = {size(plan.channels), size(plan.in.x), size(plan.in.y), size(plan.images)};
  const cuuint64_t pixel = size(original.channels * 2), line = pixel * size(original.in.x),
                   pitch[3] = {pixel, line, line * sizes[2]};
  const auto last = [](std::int64_t padding, std::int64_t kernel, std::int64_t dilation) {
    return static_cast<int>(padding - (kernel - 1) * dilation);
  };
  const int lower[2] = {static_cast<int>(-window.padding.x), static_cast<int>(-window.padding.y)},
            upper[2] = {last(window.padding.x, plan.kernel.x, window.dilation.x),
                        last(window.padding.y, plan.kernel.y, window.dilation.y)};
  const cuuint32_t step[4] = {1, static_cast<cuuint32_t>(window.stride.x),
                              static_cast<cuuint32_t>(window.stride.y), 1};
  return im2col_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<std::byte*>(x), sizes, pitch,
                          lower, upper, chunk, static_cast<cuuint32_t>(pixels), step,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool encode_filters(CUtensorMap& map, const Conv2dPlan& plan, const std::byte* weight) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(plan.kernel.y * plan.kernel.x * plan.channels),
                               static_cast<cuuint64_t>(plan.filters)};
  const cuuint64_t pitch[1] = {sizes[0] * 2};
  const cuuint32_t box[2] = {chunk, tile_filters}, step[2] = {1, 1};
  return tensor_map_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<std::byte*>(weight),
                              sizes, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

using Kernel = void (*)(CUtensorMap, CUtensorMap, Problem, BFloat16*, const float*, const BFloat16*);

Kernel kernel_for(const ClusterTile& tile) {
  if (tile.pixels == 16) return convolve<16, 1>;
  switch (tile.splits) {
    case 1:
      return convolve<32, 1>;
    case 2:
      return convolve<32, 2>;
    case 4:
      return convolve<32, 4>;
    default:
      return convolve<32, 8>;
  }
}

int parts_of(std::int64_t size, std::int64_t of) {
  return static_cast<int>((size + of - 1) / of);
}

}  // namespace

bool is_cluster_conv_applicable(const Conv2dPlan& original, Device device) {
  const Conv2dPlan plan = merge_taps(original);
  const Window& window = plan.window;
  const auto fits = [](std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                       std::int64_t dilation) {
    return stride <= 8 && padding <= 127 && (kernel - 1) * dilation - padding <= 128 &&
           (kernel - 1) * dilation <= 255;
  };
  return plan.dtype == DType::bf16 && plan.groups == 1 && plan.channels % chunk == 0 &&
         plan.filters % 8 == 0 && sizes_of(plan).y <= INT32_MAX &&
         fits(plan.kernel.y, window.stride.y, window.padding.y, window.dilation.y) &&
         fits(plan.kernel.x, window.stride.x, window.padding.x, window.dilation.x) && is_hopper(device) &&
         tensor_map_encoder() && im2col_encoder();
}

// Sharing a sum takes as long as about five chunks, so short sums get smaller tiles instead.
ClusterTile choose_cluster_tile(const Conv2dPlan& plan, int multiprocessors) {
  const std::int64_t rows = plan.images * plan.out.y * plan.out.x;
  const int chunks = static_cast<int>(plan.kernel.y * plan.kernel.x * plan.channels / chunk),
            columns = parts_of(plan.filters, tile_filters), tiles = parts_of(rows, 32) * columns;
  if (chunks <= max_stages && parts_of(rows, 16) * columns <= multiprocessors) return {16, 1};
  int splits = 1;
  while (splits < max_splits && splits * 4 <= chunks && 2 * splits * tiles <= multiprocessors) splits *= 2;
  return {32, splits};
}

bool cluster_conv2d(const Conv2dPlan& original, const ClusterTile& tile, std::byte* y, const std::byte* x,
                    const std::byte* weight, const Conv2dEpilogue& epilogue, bool settled,
                    StreamView stream) {
  const Conv2dPlan plan = merge_taps(original);
  CUtensorMap images, filters;
  if (!encode_images(images, plan, original, x, tile.pixels) || !encode_filters(filters, plan, weight))
    return false;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const int chunks = narrow(plan.kernel.y * plan.kernel.x * plan.channels / chunk);
  const Problem p{.rows = narrow(plan.images * plan.out.y * plan.out.x),
                  .filters = narrow(plan.filters),
                  .chunks = chunks,
                  .chunks_per_tap = narrow(plan.channels / chunk),
                  .out_y = narrow(plan.out.y),
                  .out_x = narrow(plan.out.x),
                  .kernel_x = narrow(plan.kernel.x),
                  .stride_y = narrow(plan.window.stride.y),
                  .stride_x = narrow(plan.window.stride.x),
                  .padding_y = narrow(plan.window.padding.y),
                  .padding_x = narrow(plan.window.padding.x),
                  .dilation_y = narrow(plan.window.dilation.y),
                  .dilation_x = narrow(plan.window.dilation.x),
                  .stages = stages_for(tile.pixels, tile.splits, parts_of(chunks, tile.splits)),
                  .relu = epilogue.activation == FusedActivation::relu};
  const Kernel kernel = kernel_for(tile);
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  shared_bytes_of(tile.pixels, tile.splits, max_stages)),
             "cudaFuncSetAttribute");
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(tile.splits), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(parts_of(p.rows, tile.pixels) * tile.splits),
                        static_cast<unsigned>(parts_of(plan.filters, tile_filters)));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes_of(tile.pixels, tile.splits, p.stages));
  config.stream = cuda_stream(stream);
  config.attrs = attributes;
  config.numAttrs = settled ? 2 : 1;
  cuda_check(cudaLaunchKernelEx(&config, kernel, images, filters, p, reinterpret_cast<BFloat16*>(y),
                                reinterpret_cast<const float*>(epilogue.bias),
                                reinterpret_cast<const BFloat16*>(epilogue.residual)),
             "cudaLaunchKernelEx");
  return true;
}

}  // namespace tandem::detail
