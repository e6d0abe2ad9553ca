#include "tandem/ops/conv/quantized_images.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/index_range.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"

namespace tandem::detail {
namespace {

// From floats to levels, to nearest, ties to even: beside 1.5 · 2²³ floats are whole numbers, and their bits
// plus n are those of the number plus n.
class Levels {
 public:
  explicit Levels(Quantization values)
      : inverse_(1 / values.scale),
        min_(-values.zero),
        max_(255 - values.zero),
        shift_(static_cast<std::int32_t>(values.zero) - whole_numbers_bits) {}

  template <std::size_t bytes, class T>
  [[gnu::always_inline]] void store(std::uint8_t* to, const T* from, std::int64_t count) const {
    constexpr auto lanes = static_cast<std::int64_t>(bytes / sizeof(float));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store_lanes<bytes>(to + i, from + i);
    if (i == count) return;
    T rest[lanes] = {};
    std::uint8_t stored[lanes];
    std::copy_n(from + i, count - i, rest);
    store_lanes<bytes>(stored, rest);
    std::copy_n(stored, count - i, to + i);
  }

 private:
  static constexpr float whole_numbers = 12582912.0f;
  static constexpr std::int32_t whole_numbers_bits = 0x4B400000;

  template <std::size_t bytes>
  [[gnu::always_inline]] static Vector<float, bytes> load(const float* from) {
    return *reinterpret_cast<const Vector<float, bytes>*>(from);
  }
  template <std::size_t bytes>
  [[gnu::always_inline]] static Vector<float, bytes> load(const BFloat16* from) {
    const auto bits = *reinterpret_cast<const Vector<std::uint16_t, bytes / 2>*>(from);
    return reinterpret_cast<Vector<float, bytes>>(__builtin_convertvector(bits, Vector<std::uint32_t, bytes>)
                                                  << 16);
  }
  template <std::size_t bytes, class T>
  [[gnu::always_inline]] void store_lanes(std::uint8_t* to, const T* from) const {
    Vector<float, bytes> value = load<bytes>(from) * inverse_;
    value = value > min_ ? value : min_ - Vector<float, bytes>{};  // of NaN, too
    value = value < max_ ? value : max_ - Vector<float, bytes>{};
    const auto levels = reinterpret_cast<Vector<std::int32_t, bytes>>(value + whole_numbers) + shift_;
    *reinterpret_cast<Vector<std::uint8_t, bytes / 4>*>(to) =
        __builtin_convertvector(levels, Vector<std::uint8_t, bytes / 4>);
  }

  float inverse_, min_, max_;
  std::int32_t shift_;
};

// to[i] = the maximum of from[i], from[i + step] and so on, `taps` of them.
template <std::size_t bytes>
[[gnu::always_inline]] inline void store_maxima(std::uint8_t* to, const std::uint8_t* from, std::int64_t step,
                                                std::int64_t taps, std::int64_t count) {
  constexpr auto lanes = static_cast<std::int64_t>(bytes);
  using Bytes = Vector<std::uint8_t, bytes>;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Bytes best = *reinterpret_cast<const Bytes*>(from + i);
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      const Bytes next = *reinterpret_cast<const Bytes*>(from + i + tap * step);
      best = next > best ? next : best;
    }
    *reinterpret_cast<Bytes*>(to + i) = best;
  }
  for (; i < count; ++i) {
    to[i] = from[i];
    for (std::int64_t tap = 1; tap < taps; ++tap) to[i] = std::max(to[i], from[i + tap * step]);
  }
}

// Where window i lies on an axis, without padding.
[[gnu::always_inline]] inline IndexRange window_of(std::int64_t i, std::int64_t kernel, std::int64_t stride,
                                                   std::int64_t padding, std::int64_t in) {
  const std::int64_t begin = i * stride - padding;
  return {std::max<std::int64_t>(begin, 0), std::min(begin + kernel, in)};
}

void quantize_elements(std::uint8_t* to, const FloatingImages& images, std::int64_t first, std::int64_t count,
                       const Levels& levels) {
  on_dtype(TypeList<float, BFloat16>{}, images.dtype, "quantize_images", [&]<class T>() {
    const T* const from = reinterpret_cast<const T*>(images.data) + first;
    with_simd([&]<std::size_t bytes>()
                  __attribute__((always_inline)) { levels.store<bytes>(to, from, count); });
  });
}

}  // namespace

PoolPlan quantized_pool_plan(std::int64_t images, YX in, std::int64_t channels, YX kernel,
                             const Window& window) {
  check(window.dilation == YX{1, 1} && kernel.y > window.padding.y && kernel.x > window.padding.x &&
            in.y + 2 * window.padding.y >= kernel.y && in.x + 2 * window.padding.x >= kernel.x,
        "[max_pool2d] expected u8 images of at least {}x{} and no dilation, got {}x{}", kernel.y, kernel.x,
        in.y, in.x);
  return {.images = images,
          .channels = channels,
          .in = in,
          .kernel = kernel,
          .out = {(in.y + 2 * window.padding.y - kernel.y) / window.stride.y + 1,
                  (in.x + 2 * window.padding.x - kernel.x) / window.stride.x + 1},
          .window = window,
          .dtype = DType::u8};
}

void check_quantized_images(const char* op, const Tensor& x) {
  check(x.dtype() == DType::u8 && x.rank() == 4,
        "[{}] expected u8 images (n, height, width, channels), got {} of {}", op, x.shape(),
        name_of(x.dtype()));
}

void check_floating_images(const char* op, const Tensor& x) {
  check((x.dtype() == DType::f32 || x.dtype() == DType::bf16) && x.rank() == 4,
        "[{}] expected images (n, height, width, channels) of f32 or bf16, got {} of {}", op, x.shape(),
        name_of(x.dtype()));
}

FloatingImages floating_images(const Tensor& contiguous) {
  return {.data = contiguous.bytes(),
          .dtype = contiguous.dtype(),
          .pixels = contiguous.size(0) * contiguous.size(1) * contiguous.size(2),
          .channels = contiguous.size(3)};
}

void quantize_pixels(const FloatingImages& images, Quantization values, std::int64_t channels,
                     std::uint8_t* y, IndexRange pixels) {
  constexpr std::int64_t chunk = 1024;  // elements
  const Levels levels(values);
  const std::int64_t given = images.channels;
  if (given == channels)
    return quantize_elements(y + pixels.begin * given, images, pixels.begin * given, pixels.count() * given,
                             levels);
  expect(given <= chunk);
  std::uint8_t dense[chunk];
  std::uint8_t* to = y + pixels.begin * channels;
  for (std::int64_t first = pixels.begin; first < pixels.end; first += chunk / given) {
    const std::int64_t count = std::min(chunk / given, pixels.end - first);
    quantize_elements(dense, images, first * given, count * given, levels);
    for (std::int64_t p = 0; p < count; ++p, to += channels)
      for (std::int64_t c = 0; c < channels; ++c)
        to[c] = c < given ? dense[p * given + c] : static_cast<std::uint8_t>(values.zero);
  }
}

template <>
void quantize_images_kernel<Backend::cpu>(const FloatingImages& images, Quantization values,
                                          std::int64_t channels, std::uint8_t* y, StreamView) {
  parallel_for(images.pixels, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
    quantize_pixels(images, values, channels, y, {begin, end});
  });
}

Tensor quantize_images(const Tensor& x, Quantization values, std::int64_t channels) {
  check_floating_images("quantize_images", x);
  expect(x.size(3) > 0 && channels >= x.size(3));
  Tensor y = Tensor::empty({x.size(0), x.size(1), x.size(2), channels}, DType::u8, x.device());
  if (y.numel() == 0) return y;
  const Tensor from = x.detach().contiguous();
  on_backend(x.device(), "quantize_images", [&]<Backend B>() {
    quantize_images_kernel<B>(floating_images(from), values, channels, y.data<std::uint8_t>(),
                              current_stream(x.device()));
  });
  return y;
}

void max_pool_lines(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x, IndexRange lines,
                    std::uint8_t* scratch) {
  const YX in = plan.in, out = plan.out, kernel = plan.kernel;
  const Window& window = plan.window;
  const std::int64_t channels = plan.channels, line_bytes = in.x * channels;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    std::uint8_t* result = y + lines.begin * out.x * channels;
    for (std::int64_t line = lines.begin; line < lines.end; ++line) {
      const IndexRange rows = window_of(line % out.y, kernel.y, window.stride.y, window.padding.y, in.y);
      store_maxima<bytes>(scratch, x + (line / out.y * in.y + rows.begin) * line_bytes, line_bytes,
                          rows.count(), line_bytes);
      for (std::int64_t column = 0; column < out.x; ++column, result += channels) {
        const IndexRange columns = window_of(column, kernel.x, window.stride.x, window.padding.x, in.x);
        store_maxima<bytes>(result, scratch + columns.begin * channels, channels, columns.count(), channels);
      }
    }
  });
}

template <>
void quantized_max_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, std::uint8_t* y, const std::uint8_t* x,
                                               StreamView) {
  parallel_for(plan.images * plan.out.y, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint8_t> scratch(static_cast<std::size_t>(plan.in.x * plan.channels));
    max_pool_lines(plan, y, x, {begin, end}, scratch.data());
  });
}

Tensor quantized_max_pool2d(const Tensor& x, YX kernel, const Window& window) {
  check_quantized_images("max_pool2d", x);
  const PoolPlan plan = quantized_pool_plan(x.size(0), {x.size(1), x.size(2)}, x.size(3), kernel, window);
  Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.channels}, DType::u8, x.device());
  if (y.numel() == 0) return y;
  const Tensor images = x.contiguous();
  on_backend(x.device(), "max_pool2d", [&]<Backend B>() {
    quantized_max_pool2d_kernel<B>(plan, y.data<std::uint8_t>(), images.data<std::uint8_t>(),
                                   current_stream(x.device()));
  });
  return y;
}

void mean_parts(const PoolPlan& plan, float* means, const std::uint8_t* x, Quantization values,
                IndexRange parts) {
  const std::int64_t pixels = plan.in.y * plan.in.x, channels = plan.channels,
                     groups = ceil_div(channels, mean_channels);
  for (std::int64_t part = parts.begin; part < parts.end; ++part) {
    const std::int64_t image = part / groups, first = part % groups * mean_channels,
                       count = std::min(mean_channels, channels - first);
    std::int32_t sums[mean_channels] = {};
    const std::uint8_t* pixel = x + image * pixels * channels + first;
    for (std::int64_t p = 0; p < pixels; ++p, pixel += channels)
      for (std::int64_t c = 0; c < count; ++c) sums[c] += pixel[c];
    for (std::int64_t c = 0; c < count; ++c)
      means[image * channels + first + c] =
          values.scale * (static_cast<float>(sums[c]) / static_cast<float>(pixels) - values.zero);
  }
}

template <>
void quantized_image_mean_kernel<Backend::cpu>(const PoolPlan& plan, float* means, const std::uint8_t* x,
                                               Quantization values, StreamView) {
  parallel_for(plan.images * ceil_div(plan.channels, mean_channels), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 mean_parts(plan, means, x, values, {begin, end});
               });
}

Tensor quantized_image_mean(const Tensor& x, Quantization values) {
  check_quantized_images("image_mean", x);
  const PoolPlan plan{
      .images = x.size(0), .channels = x.size(3), .in = {x.size(1), x.size(2)}, .dtype = DType::u8};
  Tensor means = Tensor::empty({plan.images, plan.channels}, DType::f32, x.device());
  if (means.numel() == 0) return means;
  const Tensor images = x.contiguous();
  on_backend(x.device(), "image_mean", [&]<Backend B>() {
    quantized_image_mean_kernel<B>(plan, means.data<float>(), images.data<std::uint8_t>(), values,
                                   current_stream(x.device()));
  });
  return means;
}

}  // namespace tandem::detail
