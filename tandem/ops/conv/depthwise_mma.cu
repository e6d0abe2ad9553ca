#include "tandem/ops/conv/depthwise_mma.cuh"

#include <algorithm>
#include <cstdint>

#include "tandem/core/convert.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {
namespace {

constexpr int warps = 4, warp_size = 32;
constexpr int strip_columns = 8, pack_channels = 16;

template <int kernel>
constexpr int resident_blocks = kernel == 3 ? 5 : 3;

struct Sizes {
  int images;
  int channels;
  int in_y, in_x;
  int out_y, out_x;
};

// A warp has 16 channels and goes down two strips of 8 columns at a time, of the same image or of two.
struct WarpGrid {
  int packs;           // of channels
  int strips;          // in the width of an image
  int parts;           // in its height
  int rows;            // of the output in a part
  std::int64_t pairs;  // of strips of all images, times parts
  int groups;          // of one warp per pack; they take the pairs in turn
};

WarpGrid warp_grid(const Sizes& s, int kernel, int multiprocessors) {
  WarpGrid grid{};
  grid.packs = (s.channels + pack_channels - 1) / pack_channels;
  grid.strips = (s.out_x + strip_columns - 1) / strip_columns;
  const std::int64_t strip_pairs = (std::int64_t{s.images} * grid.strips + 1) / 2,
                     resident = std::int64_t{multiprocessors} * warps * (kernel == 3 ? 5 : 3);
  // Several parts only where the images alone are too few for the GPU.
  const std::int64_t parts = std::clamp<std::int64_t>(
      resident / std::max<std::int64_t>(1, strip_pairs * grid.packs), 1, std::max(1, s.out_y / kernel));
  grid.rows = static_cast<int>((s.out_y + parts - 1) / parts);
  grid.parts = (s.out_y + grid.rows - 1) / grid.rows;
  grid.pairs = strip_pairs * grid.parts;
  grid.groups = static_cast<int>(std::clamp<std::int64_t>(2 * resident / grid.packs, 1, grid.pairs));
  return grid;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// sum += a · b for a tile of 16 rows and 8 columns, over 16 or 8 products.
__device__ void add_product(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                            std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ void add_product(float (&sum)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(b));
}

struct Words {
  std::uint32_t word[2];
};

__device__ Words load_words(const BFloat16* from) {
  Words words;
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(words.word[0]), "=r"(words.word[1]) : "l"(from));
  return words;
}

__device__ std::uint32_t bits_of(BFloat16 low, BFloat16 high) {
  return static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16;
}

// Four channels of a pixel.
__device__ void to_floats(float (&values)[4], const Words& words) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    values[2 * i] = __uint_as_float(words.word[i] << 16);
    values[2 * i + 1] = __uint_as_float(words.word[i] & 0xffff0000u);
  }
}

template <FusedActivation activation>
__device__ void activate_all(float (&values)[4]) {
#pragma unroll
  for (float& value : values) value = activate_value<Backend::cuda, activation>(value);
}

__device__ void activate(FusedActivation activation, float (&values)[4]) {
  switch (activation) {
    case FusedActivation::none:
      return;
    case FusedActivation::relu:
      return activate_all<FusedActivation::relu>(values);
    case FusedActivation::silu:
      return activate_all<FusedActivation::silu>(values);
    case FusedActivation::hardswish:
      return activate_all<FusedActivation::hardswish>(values);
  }
}

#endif

// Lane (g, q) = (lane / 4, lane % 4) has column g of both strips and four channels from 4q on. For block b of
// two, the tensor cores see its channels 4q + 2b and 4q + 2b + 1 as columns 2q and 2q + 1 of A, of B and of
// the result. Strip 0 is the upper half of the rows of A, strip 1 the lower.
template <bool flipped, int kernel, int stride>
__global__ void __launch_bounds__(warps* warp_size, resident_blocks<kernel>)
    convolve(Sizes s, WarpGrid grid, BFloat16* __restrict__ y, const BFloat16* __restrict__ x,
             const BFloat16* __restrict__ weight, const float* __restrict__ bias,
             const BFloat16* __restrict__ residual, FusedActivation activation) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int taps = kernel * kernel, half = kernel / 2, open = (kernel + stride - 1) / stride;
  const int lane = static_cast<int>(threadIdx.x) % warp_size, g = lane / 4, q = lane % 4;
  const int unit = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / warp_size;
  if (unit >= grid.groups * grid.packs) return;
  const int channel = unit % grid.packs * pack_channels + 4 * q;
  const bool is_channel = channel < s.channels;

  // Row k and column n of B are the weights of a tap where k = n, else 0.
  std::uint32_t factors[taps][2];
#pragma unroll
  for (int tap = 0; tap < taps; ++tap)
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int from = (channel + 2 * b + g % 2) * taps + (flipped ? taps - 1 - tap : tap);
      const std::uint32_t factor = g / 2 == q && is_channel ? weight[from].bits : 0;
      factors[tap][b] = g % 2 == 0 ? factor : factor << 16;
    }
  float shift[4] = {};
  if (bias && is_channel)
#pragma unroll
    for (int k = 0; k < 4; ++k) shift[k] = bias[channel + k];

  const int row_stride = s.in_x * s.channels;
  for (std::int64_t pair = unit / grid.packs; pair < grid.pairs; pair += grid.groups) {
    const int first_y = static_cast<int>(pair % grid.parts) * grid.rows,
              rows = min(grid.rows, s.out_y - first_y);
    const int first_line = first_y * stride - half;
    const BFloat16* from[2];
    std::int64_t to[2];
    bool stored[2];
    unsigned columns = 0;  // bit 2 · kx + strip: is inside of the image
#pragma unroll
    for (int strip = 0; strip < 2; ++strip) {
      const std::int64_t index = pair / grid.parts * 2 + strip, image = index / grid.strips;
      const int column = static_cast<int>(index % grid.strips) * strip_columns + g,
                first = column * stride - half;
      from[strip] = x + ((image * s.in_y + first_line) * s.in_x + first) * s.channels + channel;
      to[strip] = ((image * s.out_y + first_y) * s.out_x + column) * s.channels + channel;
      stored[strip] = image < s.images && is_channel && column < s.out_x;
#pragma unroll
      for (int kx = 0; kx < kernel; ++kx)
        if (stored[strip] && static_cast<unsigned>(first + kx) < static_cast<unsigned>(s.in_x))
          columns |= 1u << (2 * kx + strip);
    }
    const auto is_inside = [&](int line) {
      return line < (rows - 1) * stride + kernel &&
             static_cast<unsigned>(first_line + line) < static_cast<unsigned>(s.in_y);
    };
    Words pixels[kernel][2] = {};
    const auto load = [&](int kx) {
#pragma unroll
      for (int strip = 0; strip < 2; ++strip)
        if (columns & 1u << (2 * kx + strip)) pixels[kx][strip] = load_words(from[strip] + kx * s.channels);
    };
    if (is_inside(0))
#pragma unroll
      for (int kx = 0; kx < kernel; ++kx) load(kx);
    from[0] += row_stride;
    from[1] += row_stride;

    float sums[open][2][4] = {};
    for (int step = 0; step < rows + open - 1; step += open)
#pragma unroll
      for (int u = 0; u < open; ++u) {
        const int t = step + u;
        if (t >= rows + open - 1) break;
#pragma unroll
        for (int e = 0; e < stride; ++e) {
          const int line = stride * t + e;
          const bool inside = is_inside(line), next_inside = is_inside(line + 1);
          // The pixels of the next line are loaded as soon as this line's are used.
#pragma unroll
          for (int kx = 0; kx < kernel; kx += 2) {
            if (inside)
#pragma unroll
              for (int j = 0; stride * j + e < kernel; ++j)
#pragma unroll
                for (int b = 0; b < 2; ++b) {
                  const int tap = (stride * j + e) * kernel + kx;
                  float(&sum)[4] = sums[(u - j + open) % open][b];
                  if (kx + 1 < kernel)
                    add_product(sum, pixels[kx][0].word[b], pixels[kx][1].word[b], pixels[kx + 1][0].word[b],
                                pixels[kx + 1][1].word[b], factors[tap][b], factors[tap + 1][b]);
                  else
                    add_product(sum, pixels[kx][0].word[b], pixels[kx][1].word[b], factors[tap][b]);
                }
            if (next_inside) {
              load(kx);
              if (kx + 1 < kernel) load(kx + 1);
            }
          }
          from[0] += row_stride;
          from[1] += row_stride;
        }
        // Row t − (open − 1) of the output is complete. The second line of a stride of 2 was not part of it.
        float(&done)[2][4] = sums[(u + 1) % open];
        if (t >= open - 1) {
#pragma unroll
          for (int strip = 0; strip < 2; ++strip) {
            if (stored[strip]) {
              float values[4] = {done[0][2 * strip], done[0][2 * strip + 1], done[1][2 * strip],
                                 done[1][2 * strip + 1]};
#pragma unroll
              for (int k = 0; k < 4; ++k) values[k] += shift[k];
              if (residual) {
                float added[4];
                to_floats(added, load_words(residual + to[strip]));
#pragma unroll
                for (int k = 0; k < 4; ++k) values[k] += added[k];
              }
              activate(activation, values);
              const uint2 result{bits_of(convert<BFloat16>(values[0]), convert<BFloat16>(values[1])),
                                 bits_of(convert<BFloat16>(values[2]), convert<BFloat16>(values[3]))};
              *reinterpret_cast<uint2*>(y + to[strip]) = result;
            }
            to[strip] += s.out_x * s.channels;
          }
        }
#pragma unroll
        for (int b = 0; b < 2; ++b)
#pragma unroll
          for (int k = 0; k < 4; ++k) done[b][k] = 0;
      }
  }
#endif
}

}  // namespace

bool is_depthwise_on_tensor_cores(const Conv2dPlan& plan, Device device) {
  return plan.dtype == DType::bf16 && plan.channels % 4 == 0 && is_hopper(device);
}

void depthwise_conv2d_on_tensor_cores(const Conv2dPlan& plan, bool flipped, std::byte* y, const std::byte* x,
                                      const std::byte* weight, const Conv2dEpilogue& epilogue,
                                      StreamView stream) {
  const Sizes s{.images = static_cast<int>(plan.images),
                .channels = static_cast<int>(plan.channels),
                .in_y = static_cast<int>(plan.in.y),
                .in_x = static_cast<int>(plan.in.x),
                .out_y = static_cast<int>(plan.out.y),
                .out_x = static_cast<int>(plan.out.x)};
  const WarpGrid grid = warp_grid(s, static_cast<int>(plan.kernel.y), multiprocessor_count(stream.device));
  const auto run = [&]<bool flip, int kernel, int stride>() {
    const auto blocks = static_cast<unsigned>((std::int64_t{grid.groups} * grid.packs + warps - 1) / warps);
    convolve<flip, kernel, stride><<<blocks, warps * warp_size, 0, cuda_stream(stream)>>>(
        s, grid, reinterpret_cast<BFloat16*>(y), reinterpret_cast<const BFloat16*>(x),
        reinterpret_cast<const BFloat16*>(weight), reinterpret_cast<const float*>(epilogue.bias),
        reinterpret_cast<const BFloat16*>(epilogue.residual), epilogue.activation);
  };
  const auto with_kernel = [&]<int kernel>() {
    if (plan.window.stride.y == 2)
      run.template operator()<false, kernel, 2>();
    else if (flipped)
      run.template operator()<true, kernel, 1>();
    else
      run.template operator()<false, kernel, 1>();
  };
  plan.kernel.y == 3 ? with_kernel.template operator()<3>() : with_kernel.template operator()<5>();
  check_launch("depthwise conv2d on tensor cores");
}

}  // namespace tandem::detail
