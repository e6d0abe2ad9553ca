#include "tandem/ops/conv/space_to_depth.cuh"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;
constexpr int pixel_threads = 64;  // few, so that one image has blocks for every multiprocessor

// The sizes of the original and of the transformed images, as the kernels need them.
struct ImageSizes {
  int factor;
  int channels, new_channels;
  int in_y, in_x;
  int out_y, out_x;
  int zero_blocks_y, zero_blocks_x;
};

ImageSizes image_sizes(const SpaceToDepth& mapping) {
  return {mapping.factor,
          static_cast<int>(mapping.original.channels),
          static_cast<int>(mapping.plan.channels),
          static_cast<int>(mapping.original.in.y),
          static_cast<int>(mapping.original.in.x),
          static_cast<int>(mapping.plan.in.y),
          static_cast<int>(mapping.plan.in.x),
          static_cast<int>(mapping.zero_blocks.y),
          static_cast<int>(mapping.zero_blocks.x)};
}

// One thread per transformed pixel. Its values stay in registers, because all loops have constant bounds.
template <class T, int factor, int channels>
__global__ void __launch_bounds__(pixel_threads)
    transform_pixels(ImageSizes sizes, std::int64_t pixels, T* __restrict__ transformed,
                     const T* __restrict__ x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * pixel_threads + threadIdx.x;
  if (i >= pixels) return;
  const int column = static_cast<int>(i % sizes.out_x);
  const std::int64_t line = i / sizes.out_x;
  const int row = static_cast<int>(line % sizes.out_y);
  const std::int64_t image = line / sizes.out_y;
  constexpr int width = 16 / sizeof(T), packs = (factor * factor * channels + width - 1) / width;
  using Values = Pack<T, width>;
  Values values[packs];
#pragma unroll
  for (int c = 0; c < packs * width; ++c) values[c / width].value[c % width] = convert<T>(0.0f);
#pragma unroll
  for (int tap = 0; tap < factor * factor; ++tap) {
    const int y = (row - sizes.zero_blocks_y) * factor + tap / factor,
              at = (column - sizes.zero_blocks_x) * factor + tap % factor;
    if (y < 0 || y >= sizes.in_y || at < 0 || at >= sizes.in_x) continue;
    const T* const from = x + ((image * sizes.in_y + y) * sizes.in_x + at) * channels;
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const int to = tap * channels + c;
      values[to / width].value[to % width] = from[c];
    }
  }
  auto* const to = reinterpret_cast<Values*>(transformed) + i * packs;
#pragma unroll
  for (int pack = 0; pack < packs; ++pack) to[pack] = values[pack];
}

struct KernelSizes {
  int y, x;
  int new_y, new_x;
  int shift_y, shift_x;
  std::int64_t count;  // of elements of the transformed weight
};

// Maps element i of the transformed weight to the original one: f(offset in the transformed weight, offset in
// the original weight, whether it exists there).
template <class F>
__device__ void on_weight(const ImageSizes& sizes, const KernelSizes& kernel, std::int64_t i, F&& f) {
  const int channel = static_cast<int>(i % sizes.new_channels);
  const std::int64_t tap = i / sizes.new_channels;
  const int new_x = static_cast<int>(tap % kernel.new_x),
            new_y = static_cast<int>(tap / kernel.new_x % kernel.new_y);
  const std::int64_t filter = tap / (std::int64_t{kernel.new_x} * kernel.new_y);
  const int part = channel / sizes.channels, c = channel % sizes.channels;
  const int ky = new_y * sizes.factor + part / sizes.factor - kernel.shift_y,
            kx = new_x * sizes.factor + part % sizes.factor - kernel.shift_x;
  const bool exists =
      part < sizes.factor * sizes.factor && ky >= 0 && ky < kernel.y && kx >= 0 && kx < kernel.x;
  f(i, ((filter * kernel.y + ky) * kernel.x + kx) * sizes.channels + c, exists);
}

KernelSizes kernel_sizes(const SpaceToDepth& mapping) {
  return {static_cast<int>(mapping.original.kernel.y),
          static_cast<int>(mapping.original.kernel.x),
          static_cast<int>(mapping.plan.kernel.y),
          static_cast<int>(mapping.plan.kernel.x),
          static_cast<int>(mapping.tap_shift.y),
          static_cast<int>(mapping.tap_shift.x),
          sizes_of(mapping.plan).weight};
}

template <class T>
__global__ void __launch_bounds__(threads)
    transform_weight(ImageSizes sizes, KernelSizes kernel, T* __restrict__ transformed,
                     const T* __restrict__ weight) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= kernel.count) return;
  on_weight(sizes, kernel, i, [&](std::int64_t to, std::int64_t from, bool exists) {
    transformed[to] = exists ? weight[from] : convert<T>(0.0f);
  });
}

template <class T>
__global__ void __launch_bounds__(threads)
    restore_weight(ImageSizes sizes, KernelSizes kernel, float* __restrict__ weight,
                   const T* __restrict__ transformed) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= kernel.count) return;
  on_weight(sizes, kernel, i, [&](std::int64_t from, std::int64_t to, bool exists) {
    if (exists) weight[to] = convert<float>(transformed[from]);
  });
}

unsigned grid_size(std::int64_t count, int per_block = threads) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// Channels in 16 bytes.
std::int64_t pack_of(const Conv2dPlan& plan) {
  return plan.dtype == DType::bf16 ? 8 : 4;
}

using Types = TypeList<float, BFloat16>;

}  // namespace

bool is_space_to_depth_profitable(const Conv2dPlan& plan) {
  const bool tensor_cores =
      plan.dtype == DType::bf16 || (plan.dtype == DType::f32 && plan.precision != MatmulPrecision::fp32);
  return tensor_cores && plan.groups == 1 && plan.channels <= 4 && plan.channels % pack_of(plan) != 0 &&
         plan.window.dilation == YX{1, 1};
}

SpaceToDepth make_space_to_depth(const Conv2dPlan& plan) {
  SpaceToDepth mapping;
  mapping.plan = mapping.original = plan;
  const bool blocks = plan.window.stride == YX{2, 2};
  mapping.factor = blocks ? 2 : 1;
  const std::int64_t channels = plan.channels * mapping.factor * mapping.factor, pack = pack_of(plan);
  mapping.plan.channels = (channels + pack - 1) / pack * pack;
  if (!blocks) return mapping;
  // Tap k of window y reads pixel 2y + k − padding = 2 (y + (k + shift) / 2 − blocks) + (k + shift) % 2.
  const auto blocks_before = [](std::int64_t padding) { return (padding + 1) / 2; };
  mapping.zero_blocks = {blocks_before(plan.window.padding.y), blocks_before(plan.window.padding.x)};
  mapping.tap_shift = {2 * mapping.zero_blocks.y - plan.window.padding.y,
                       2 * mapping.zero_blocks.x - plan.window.padding.x};
  mapping.plan.kernel = {(plan.kernel.y + mapping.tap_shift.y + 1) / 2,
                         (plan.kernel.x + mapping.tap_shift.x + 1) / 2};
  mapping.plan.in = {plan.out.y + mapping.plan.kernel.y - 1, plan.out.x + mapping.plan.kernel.x - 1};
  mapping.plan.window = {.stride = {1, 1}, .padding = {0, 0}, .dilation = {1, 1}};
  return mapping;
}

void space_to_depth_images(const SpaceToDepth& mapping, std::byte* transformed, const std::byte* x,
                           StreamView stream) {
  const std::int64_t pixels = mapping.plan.images * mapping.plan.in.y * mapping.plan.in.x;
  on_dtype(Types{}, mapping.plan.dtype, "conv2d", [&]<class T>() {
    const auto launch = [&]<int factor, int channels>() {
      transform_pixels<T, factor, channels>
          <<<grid_size(pixels, pixel_threads), pixel_threads, 0, cuda_stream(stream)>>>(
              image_sizes(mapping), pixels, reinterpret_cast<T*>(transformed), reinterpret_cast<const T*>(x));
    };
    const auto with_channels = [&]<int factor>() {
      switch (mapping.original.channels) {
        case 1:
          return launch.template operator()<factor, 1>();
        case 2:
          return launch.template operator()<factor, 2>();
        case 3:
          return launch.template operator()<factor, 3>();
        default:
          return launch.template operator()<factor, 4>();
      }
    };
    mapping.factor == 2 ? with_channels.template operator()<2>() : with_channels.template operator()<1>();
  });
  check_launch("conv2d space-to-depth images");
}

void space_to_depth_weight(const SpaceToDepth& mapping, std::byte* transformed, const std::byte* weight,
                           StreamView stream) {
  const KernelSizes kernel = kernel_sizes(mapping);
  on_dtype(Types{}, mapping.plan.dtype, "conv2d", [&]<class T>() {
    transform_weight<T><<<grid_size(kernel.count), threads, 0, cuda_stream(stream)>>>(
        image_sizes(mapping), kernel, reinterpret_cast<T*>(transformed), reinterpret_cast<const T*>(weight));
  });
  check_launch("conv2d space-to-depth weight");
}

void depth_to_space_weight(const SpaceToDepth& mapping, std::byte* weight, const std::byte* transformed,
                           StreamView stream) {
  const KernelSizes kernel = kernel_sizes(mapping);
  on_dtype(Types{}, mapping.plan.dtype, "conv2d", [&]<class T>() {
    restore_weight<T><<<grid_size(kernel.count), threads, 0, cuda_stream(stream)>>>(
        image_sizes(mapping), kernel, reinterpret_cast<float*>(weight),
        reinterpret_cast<const T*>(transformed));
  });
  check_launch("conv2d depth-to-space weight");
}

}  // namespace tandem::detail
