#include "tandem/ops/conv2d_fold.cuh"

#include "tandem/ops/elementwise.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int most_channels = 16;  // of a folded image

// The pixel that is part `part` (0 … factor² − 1) of a block.
struct Axes {
  int factor, channels, folded_channels;
  int in_y, in_x, out_y, out_x;  // sizes of the images, of the folded ones
  int before_y, before_x;
};

Axes axes_of(const Folding& folding) {
  return {folding.factor,
          static_cast<int>(folding.from.channels),
          static_cast<int>(folding.plan.channels),
          static_cast<int>(folding.from.in.y),
          static_cast<int>(folding.from.in.x),
          static_cast<int>(folding.plan.in.y),
          static_cast<int>(folding.plan.in.x),
          static_cast<int>(folding.before.y),
          static_cast<int>(folding.before.x)};
}

// A thread for each folded pixel.
template <class T>
__global__ void __launch_bounds__(threads)
    fold_pixels(Axes axes, std::int64_t pixels, T* __restrict__ folded, const T* __restrict__ x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= pixels) return;
  const int column = static_cast<int>(i % axes.out_x);
  const std::int64_t line = i / axes.out_x;
  const int row = static_cast<int>(line % axes.out_y);
  const std::int64_t image = line / axes.out_y;
  alignas(16) T values[most_channels];
#pragma unroll
  for (int c = 0; c < most_channels; ++c) values[c] = convert<T>(0.0f);
  int next = 0;
  for (int a = 0; a < axes.factor; ++a)
    for (int b = 0; b < axes.factor; ++b) {
      const int y = (row - axes.before_y) * axes.factor + a, at = (column - axes.before_x) * axes.factor + b;
      const bool inside = y >= 0 && y < axes.in_y && at >= 0 && at < axes.in_x;
      const T* const from = x + ((image * axes.in_y + y) * axes.in_x + at) * axes.channels;
      for (int c = 0; c < axes.channels; ++c, ++next)
        if (inside) values[next] = from[c];
    }
  constexpr int width = 16 / sizeof(T);
  using Values = Pack<T, width>;
  auto* const to = reinterpret_cast<Values*>(folded + i * axes.folded_channels);
#pragma unroll
  for (int pack = 0; pack < most_channels / width; ++pack)
    if (pack * width < axes.folded_channels) to[pack] = reinterpret_cast<const Values*>(values)[pack];
}

// Which tap of the weight a folded one is: f(offset in the folded weight, offset in the weight, whether it
// exists).
template <class F>
__device__ void on_tap(const Axes& axes, std::int64_t i, int kernel_y, int kernel_x, int folded_y,
                       int folded_x, int shift_y, int shift_x, F&& f) {
  const int channel = static_cast<int>(i % axes.folded_channels);
  const std::int64_t tap = i / axes.folded_channels;
  const int fx = static_cast<int>(tap % folded_x), fy = static_cast<int>(tap / folded_x % folded_y);
  const std::int64_t filter = tap / (std::int64_t{folded_x} * folded_y);
  const int part = channel / axes.channels, c = channel % axes.channels;
  const int ky = fy * axes.factor + part / axes.factor - shift_y,
            kx = fx * axes.factor + part % axes.factor - shift_x;
  const bool exists =
      part < axes.factor * axes.factor && ky >= 0 && ky < kernel_y && kx >= 0 && kx < kernel_x;
  f(i, ((filter * kernel_y + ky) * kernel_x + kx) * axes.channels + c, exists);
}

struct Taps {
  int kernel_y, kernel_x, folded_y, folded_x, shift_y, shift_x;
  std::int64_t count;
};

Taps taps_of(const Folding& folding) {
  return {static_cast<int>(folding.from.kernel.y),
          static_cast<int>(folding.from.kernel.x),
          static_cast<int>(folding.plan.kernel.y),
          static_cast<int>(folding.plan.kernel.x),
          static_cast<int>(folding.shift.y),
          static_cast<int>(folding.shift.x),
          sizes_of(folding.plan).weight};
}

template <class T>
__global__ void __launch_bounds__(threads)
    fold_taps(Axes axes, Taps taps, T* __restrict__ folded, const T* __restrict__ weight) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= taps.count) return;
  on_tap(axes, i, taps.kernel_y, taps.kernel_x, taps.folded_y, taps.folded_x, taps.shift_y, taps.shift_x,
         [&](std::int64_t to, std::int64_t from, bool exists) {
           folded[to] = exists ? weight[from] : convert<T>(0.0f);
         });
}

template <class T>
__global__ void __launch_bounds__(threads)
    unfold_taps(Axes axes, Taps taps, float* __restrict__ weight, const T* __restrict__ folded) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= taps.count) return;
  on_tap(axes, i, taps.kernel_y, taps.kernel_x, taps.folded_y, taps.folded_x, taps.shift_y, taps.shift_x,
         [&](std::int64_t from, std::int64_t to, bool exists) {
           if (exists) weight[to] = convert<float>(folded[from]);
         });
}

unsigned blocks_of(std::int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

std::int64_t pack_of(const Conv2dPlan& plan) {
  return plan.dtype == DType::bf16 ? 8 : 4;
}

using Types = TypeList<float, BFloat16>;

}  // namespace

bool wants_folding(const Conv2dPlan& plan) {
  const bool tensor_cores =
      plan.dtype == DType::bf16 || (plan.dtype == DType::f32 && plan.precision != MatmulPrecision::fp32);
  return tensor_cores && plan.groups == 1 && plan.channels <= 4 && plan.channels % pack_of(plan) != 0 &&
         plan.window.dilation == YX{1, 1};
}

Folding fold(const Conv2dPlan& plan) {
  Folding folding;
  folding.plan = folding.from = plan;
  const bool blocks = plan.window.stride == YX{2, 2};
  folding.factor = blocks ? 2 : 1;
  const std::int64_t channels = plan.channels * folding.factor * folding.factor, pack = pack_of(plan);
  folding.plan.channels = (channels + pack - 1) / pack * pack;
  if (!blocks) return folding;
  // Window y looks at pixels 2y + k − padding = 2 (y + (k + shift) / 2 − before) + (k + shift) % 2.
  const auto before = [](std::int64_t padding) { return (padding + 1) / 2; };
  folding.before = {before(plan.window.padding.y), before(plan.window.padding.x)};
  folding.shift = {2 * folding.before.y - plan.window.padding.y,
                   2 * folding.before.x - plan.window.padding.x};
  folding.plan.kernel = {(plan.kernel.y + folding.shift.y + 1) / 2,
                         (plan.kernel.x + folding.shift.x + 1) / 2};
  folding.plan.in = {plan.out.y + folding.plan.kernel.y - 1, plan.out.x + folding.plan.kernel.x - 1};
  folding.plan.window = {.stride = {1, 1}, .padding = {0, 0}, .dilation = {1, 1}};
  return folding;
}

void fold_images(const Folding& folding, std::byte* folded, const std::byte* x, StreamView stream) {
  const std::int64_t pixels = folding.plan.images * folding.plan.in.y * folding.plan.in.x;
  on_dtype(Types{}, folding.plan.dtype, "conv2d", [&]<class T>() {
    fold_pixels<T><<<blocks_of(pixels), threads, 0, cuda_stream(stream)>>>(
        axes_of(folding), pixels, reinterpret_cast<T*>(folded), reinterpret_cast<const T*>(x));
  });
  check_launch("conv2d fold");
}

void fold_weight(const Folding& folding, std::byte* folded, const std::byte* weight, StreamView stream) {
  const Taps taps = taps_of(folding);
  on_dtype(Types{}, folding.plan.dtype, "conv2d", [&]<class T>() {
    fold_taps<T><<<blocks_of(taps.count), threads, 0, cuda_stream(stream)>>>(
        axes_of(folding), taps, reinterpret_cast<T*>(folded), reinterpret_cast<const T*>(weight));
  });
  check_launch("conv2d fold weight");
}

void unfold_weight(const Folding& folding, std::byte* weight, const std::byte* folded, StreamView stream) {
  const Taps taps = taps_of(folding);
  on_dtype(Types{}, folding.plan.dtype, "conv2d", [&]<class T>() {
    unfold_taps<T><<<blocks_of(taps.count), threads, 0, cuda_stream(stream)>>>(
        axes_of(folding), taps, reinterpret_cast<float*>(weight), reinterpret_cast<const T*>(folded));
  });
  check_launch("conv2d unfold weight");
}

}  // namespace tandem
