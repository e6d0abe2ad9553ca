#include "tandem/ops/conv/pool.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>
#include <span>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool_kernel.h"
#include "tandem/ops/conv/window_kernel.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace detail {
namespace {

// Channels are processed in blocks whose accumulators fit registers and the L1 cache.
constexpr std::int64_t channel_block = 64;

struct Span {
  std::int64_t begin, end;
};

struct Area {
  Span rows, columns;
};

// Calls f(image, row, column) for every pixel of images of `size`, in parallel.
template <class F>
void for_each_pixel(std::int64_t images, YX size, std::int64_t channels, const F& f) {
  parallel_for(images * size.y * size.x, std::max<std::int64_t>(4096 / channels, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   std::int64_t image = begin / size.x / size.y, row = begin / size.x % size.y,
                                column = begin % size.x;
                   for (std::int64_t pixel = begin; pixel < end; ++pixel) {
                     f(image, row, column);
                     if (++column < size.x) continue;
                     column = 0;
                     if (++row < size.y) continue;
                     row = 0;
                     ++image;
                   }
                 });
               });
}

// Calls f(c, count) for blocks of channels that begin at c. The count of a whole block is a constant.
template <class F>
[[gnu::always_inline]] inline void for_each_block(std::int64_t channels, const F& f) {
  std::int64_t c = 0;
  for (; c + channel_block <= channels; c += channel_block)
    f(c, std::integral_constant<std::int64_t, channel_block>{});
  if (c < channels) f(c, channels - c);
}

template <class T, class C>
[[gnu::always_inline]] inline void store(T* to, const C* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<T>(from[i]);
}

// Some channels of one pixel.
struct PixelChannels {
  std::int64_t image, row, column, first, count;

  // The offset of these channels at position (y, x) of the same image in images of `size`.
  std::int64_t offset_at(YX size, std::int64_t y, std::int64_t x, std::int64_t channels) const {
    return ((image * size.y + y) * size.x + x) * channels + first;
  }
};

// Writes a sum to every pixel of `to`, images of `size`. window(row, column) is that of a pixel, which has
// about `taps` elements; accumulate(window, at, sum) adds to the sums of a block of channels, which begin as
// 0. Blocks are divided among the threads too: the mean of few images has few pixels.
template <class T, class W, class F>
void write_sums(const PoolPlan& plan, YX size, std::int64_t taps, T* to, const W& window,
                const F& accumulate) {
  const std::int64_t blocks = ceil_div(plan.channels, channel_block),
                     grain = std::max<std::int64_t>(4096 * blocks / (plan.channels * taps), 1);
  parallel_for(plan.images * size.y * size.x * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (std::int64_t pixel = begin / blocks; pixel * blocks < end; ++pixel) {
        const std::int64_t row = pixel / size.x % size.y, column = pixel % size.x,
                           first_block = std::max<std::int64_t>(begin - pixel * blocks, 0),
                           channels = std::min(plan.channels, (end - pixel * blocks) * channel_block);
        const auto pixel_window = window(row, column);
        for (std::int64_t c = first_block * channel_block; c < channels; c += channel_block) {
          const PixelChannels at{pixel / size.x / size.y, row, column, c,
                                 std::min(channel_block, channels - c)};
          ComputeType<T> sum[channel_block] = {};
          accumulate(pixel_window, at, sum);
          store(to + at.offset_at(size, row, column, plan.channels), sum, at.count);
        }
      }
    });
  });
}

// One axis of a sliding window.
struct Axis {
  std::int64_t in, kernel, stride, padding, dilation, out;

  // The taps of output `o` that lie inside the image.
  Span taps(std::int64_t o) const {
    const std::int64_t first = o * stride - padding;
    return {first >= 0 ? 0 : (-first + dilation - 1) / dilation,
            std::min(kernel, (in - first + dilation - 1) / dilation)};
  }
  // The outputs whose windows span position i. With dilation, not all of them have a tap there.
  Span outputs(std::int64_t i) const {
    const std::int64_t extent = dilation * (kernel - 1), at = i + padding;
    return {at <= extent ? 0 : (at - extent + stride - 1) / stride, std::min(out, at / stride + 1)};
  }
};

Axis vertical_axis(const PoolPlan& plan) {
  return {plan.in.y, plan.kernel.y, plan.window.stride.y, plan.window.padding.y, plan.window.dilation.y,
          plan.out.y};
}
Axis horizontal_axis(const PoolPlan& plan) {
  return {plan.in.x, plan.kernel.x, plan.window.stride.x, plan.window.padding.x, plan.window.dilation.x,
          plan.out.x};
}

// `argmax` may be null without `with_argmax`.
template <bool with_argmax, class T>
void max_pool(const PoolPlan& plan, T* y, std::uint8_t* argmax, const T* x) {
  using C = ComputeType<T>;
  const Axis vertical = vertical_axis(plan), horizontal = horizontal_axis(plan);
  for_each_pixel(
      plan.images, plan.out, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const Span rows = vertical.taps(row), columns = horizontal.taps(column);
        const std::int64_t pixel = (image * plan.out.y + row) * plan.out.x + column;
        for_each_block(
            plan.channels, [&](std::int64_t c, auto count) __attribute__((always_inline)) {
              C best[channel_block];
              [[maybe_unused]] std::int32_t best_tap[channel_block];
              std::fill_n(best, channel_block, -std::numeric_limits<C>::infinity());
              if constexpr (with_argmax)
                std::fill_n(best_tap, channel_block,
                            static_cast<std::int32_t>(rows.begin * plan.kernel.x + columns.begin));
              for (std::int64_t ky = rows.begin; ky < rows.end; ++ky)
                for (std::int64_t kx = columns.begin; kx < columns.end; ++kx) {
                  const std::int64_t from_y =
                      row * vertical.stride - vertical.padding + ky * vertical.dilation;
                  const std::int64_t from_x =
                      column * horizontal.stride - horizontal.padding + kx * horizontal.dilation;
                  const T* from = x + ((image * plan.in.y + from_y) * plan.in.x + from_x) * plan.channels + c;
                  [[maybe_unused]] const auto tap = static_cast<std::int32_t>(ky * plan.kernel.x + kx);
                  for (std::int64_t i = 0; i < count; ++i) {
                    const C value = convert<C>(from[i]);
                    const bool wins = (value > best[i]) | (value != value);
                    best[i] = wins ? value : best[i];
                    if constexpr (with_argmax) best_tap[i] = wins ? tap : best_tap[i];
                  }
                }
              store(y + pixel * plan.channels + c, best, count);
              if constexpr (with_argmax)
                for (std::int64_t i = 0; i < count; ++i)
                  argmax[pixel * plan.channels + c + i] = static_cast<std::uint8_t>(best_tap[i]);
            });
      });
}

// Bits of bf16 as integers in the order of the values. NaN is above all others.
template <class V>
[[gnu::always_inline]] inline V ordered_bits(V bits) {
  const V key = bits ^ ((bits >> 15) & 0x7fff);
  return (bits & 0x7fff) > 0x7f80 ? V{} + 0x7fff : key;
}

}  // namespace

// The same as max_pool<false>, but for the bits of NaN and of zeros, without conversions.
void max_pool_lines(const PoolPlan& plan, BFloat16* y, const BFloat16* x, IndexRange lines) {
  const Axis vertical = vertical_axis(plan), horizontal = horizontal_axis(plan);
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    using Bits = Vector<std::int16_t, bytes>;
    constexpr auto lanes = static_cast<std::int64_t>(bytes / 2);
    constexpr std::int16_t lowest = -0x7f81;  // of -infinity
    for (std::int64_t line = lines.begin; line < lines.end; ++line) {
      const std::int64_t image = line / plan.out.y, row = line % plan.out.y;
      const Span rows = vertical.taps(row);
      for (std::int64_t column = 0; column < plan.out.x; ++column) {
        const Span columns = horizontal.taps(column);
        for (std::int64_t c = 0; c < plan.channels; c += lanes) {
          const auto size = static_cast<std::size_t>(std::min(lanes, plan.channels - c) * 2);
          Bits best = Bits{} + lowest;
          for (std::int64_t ky = rows.begin; ky < rows.end; ++ky)
            for (std::int64_t kx = columns.begin; kx < columns.end; ++kx) {
              const std::int64_t from_y = row * vertical.stride - vertical.padding + ky * vertical.dilation,
                                 from_x = column * horizontal.stride - horizontal.padding +
                                          kx * horizontal.dilation;
              const BFloat16* const from =
                  x + ((image * plan.in.y + from_y) * plan.in.x + from_x) * plan.channels + c;
              Bits bits{};
              if (size == bytes)
                std::memcpy(&bits, from, bytes);
              else
                std::memcpy(&bits, from, size);
              const Bits key = ordered_bits(bits);
              best = best > key ? best : key;
            }
          best = best ^ ((best >> 15) & 0x7fff);
          std::memcpy(static_cast<void*>(y + (line * plan.out.x + column) * plan.channels + c), &best, size);
        }
      }
    }
  });
}

namespace {

// For every position of an axis, the outputs whose windows span it.
class AxisOutputs {
 public:
  struct Output {
    std::int64_t at;
    std::int64_t tap;  // the position's place in the window; -1 if dilation skips it
  };

  explicit AxisOutputs(const Axis& axis) {
    for (std::int64_t i = 0; i < axis.in; ++i) {
      const Span outputs = axis.outputs(i);
      for (std::int64_t o = outputs.begin; o < outputs.end; ++o) {
        const std::int64_t distance = i + axis.padding - o * axis.stride;
        outputs_.push_back({o, distance % axis.dilation == 0 ? distance / axis.dilation : -1});
      }
      ends_.push_back(outputs_.size());
    }
  }

  std::span<const Output> of(std::int64_t i) const {
    const auto position = static_cast<std::size_t>(i);
    const std::size_t begin = position > 0 ? ends_[position - 1] : 0;
    return {outputs_.data() + begin, ends_[position] - begin};
  }

 private:
  RecycledVector<Output> outputs_;
  RecycledVector<std::size_t> ends_;
};

// Every pixel of x gathers from the windows that contain it, so no two threads write to the same element.
template <class T>
void max_pool_gradient(const PoolPlan& plan, T* dx, const T* dy, const std::uint8_t* argmax) {
  using C = ComputeType<T>;
  const AxisOutputs vertical(vertical_axis(plan)), horizontal(horizontal_axis(plan));
  for_each_pixel(
      plan.images, plan.in, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const auto rows = vertical.of(row), columns = horizontal.of(column);
        T* const to = dx + ((image * plan.in.y + row) * plan.in.x + column) * plan.channels;
        for_each_block(
            plan.channels, [&](std::int64_t c, auto count) __attribute__((always_inline)) {
              C sum[channel_block] = {};
              for (const auto& oy : rows)
                for (const auto& ox : columns) {
                  // Without a condition here GCC 12 unrolls this loop into the one over channels, which takes
                  // up to four times as long.
                  if (oy.tap < 0 || ox.tap < 0) continue;
                  const auto tap = static_cast<std::int32_t>(oy.tap * plan.kernel.x + ox.tap);
                  const std::int64_t from =
                      ((image * plan.out.y + oy.at) * plan.out.x + ox.at) * plan.channels + c;
                  for (std::int64_t i = 0; i < count; ++i) {
                    const C gradient =
                        convert<C>(dy[from + i]);  // GCC 12 vectorizes no load that depends on a condition
                    sum[i] += argmax[from + i] == tap ? gradient : C{0};
                  }
                }
              store(to + c, sum, count);
            });
      });
}

// Which positions of an axis each output of average pooling covers, and the inverse.
struct Regions {
  Axis axis;
  bool adaptive;

  Span positions(std::int64_t o) const {
    if (adaptive) return {o * axis.in / axis.out, ((o + 1) * axis.in + axis.out - 1) / axis.out};
    const std::int64_t first = o * axis.stride - axis.padding;
    return {std::max<std::int64_t>(first, 0), std::min(first + axis.kernel, axis.in)};
  }
  Span outputs(std::int64_t i) const {
    if (adaptive) return {i * axis.out / axis.in, ((i + 1) * axis.out + axis.in - 1) / axis.in};
    return axis.outputs(i);
  }
  // What the sum is divided by; padding counts.
  std::int64_t size(std::int64_t o) const {
    if (!adaptive) return axis.kernel;
    const Span span = positions(o);
    return span.end - span.begin;
  }
};

template <class T>
void avg_pool(const PoolPlan& plan, bool adaptive, T* y, const T* x) {
  using C = ComputeType<T>;
  const Regions vertical{vertical_axis(plan), adaptive}, horizontal{horizontal_axis(plan), adaptive};
  const auto positions = [&](std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
    return Area{vertical.positions(row), horizontal.positions(column)};
  };
  const auto average = [&](const Area& area, const PixelChannels& at, C* sum) __attribute__((always_inline)) {
    for (std::int64_t from_y = area.rows.begin; from_y < area.rows.end; ++from_y)
      for (std::int64_t from_x = area.columns.begin; from_x < area.columns.end; ++from_x) {
        const T* from = x + at.offset_at(plan.in, from_y, from_x, plan.channels);
        for (std::int64_t i = 0; i < at.count; ++i) sum[i] += convert<C>(from[i]);
      }
    const auto size = static_cast<C>(vertical.size(at.row) * horizontal.size(at.column));
    for (std::int64_t i = 0; i < at.count; ++i) sum[i] /= size;
  };
  const std::int64_t taps =
      adaptive ? ceil_div(plan.in.y * plan.in.x, plan.out.y * plan.out.x) : plan.kernel.y * plan.kernel.x;
  write_sums(plan, plan.out, taps, y, positions, average);
}

// Every pixel gathers, as in max_pool_gradient().
template <class T>
void avg_pool_gradient(const PoolPlan& plan, bool adaptive, T* dx, const T* dy) {
  using C = ComputeType<T>;
  const Regions vertical{vertical_axis(plan), adaptive}, horizontal{horizontal_axis(plan), adaptive};
  const auto outputs = [&](std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
    return Area{vertical.outputs(row), horizontal.outputs(column)};
  };
  const auto gather = [&](const Area& area, const PixelChannels& at, C* sum) __attribute__((always_inline)) {
    for (std::int64_t oy = area.rows.begin; oy < area.rows.end; ++oy)
      for (std::int64_t ox = area.columns.begin; ox < area.columns.end; ++ox) {
        const T* from = dy + at.offset_at(plan.out, oy, ox, plan.channels);
        const auto share = static_cast<C>(1.0 / static_cast<double>(vertical.size(oy) * horizontal.size(ox)));
        for (std::int64_t i = 0; i < at.count; ++i) sum[i] += convert<C>(from[i]) * share;
      }
  };
  const std::int64_t windows =
      plan.out.y * plan.out.x * plan.kernel.y * plan.kernel.x / (plan.in.y * plan.in.x);
  write_sums(plan, plan.in, std::max<std::int64_t>(windows, 1), dx, outputs, gather);
}

}  // namespace

template <>
void max_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, std::byte* y, std::uint8_t* argmax,
                                     const std::byte* x, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "max_pool2d", [&]<class T>() {
    if (argmax)
      max_pool<true>(plan, reinterpret_cast<T*>(y), argmax, reinterpret_cast<const T*>(x));
    else if constexpr (std::same_as<T, BFloat16>)
      parallel_for(plan.images * plan.out.y, 1, [&](std::int64_t begin, std::int64_t end) {
        max_pool_lines(plan, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x), {begin, end});
      });
    else
      max_pool<false>(plan, reinterpret_cast<T*>(y), argmax, reinterpret_cast<const T*>(x));
  });
}

template <>
void max_pool2d_gradient_kernel<Backend::cpu>(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                              const std::uint8_t* argmax, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "max_pool2d", [&]<class T>() {
    max_pool_gradient(plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy), argmax);
  });
}

template <>
void avg_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, bool adaptive, std::byte* y, const std::byte* x,
                                     StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "avg_pool2d", [&]<class T>() {
    avg_pool(plan, adaptive, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x));
  });
}

template <>
void avg_pool2d_gradient_kernel<Backend::cpu>(const PoolPlan& plan, bool adaptive, std::byte* dx,
                                              const std::byte* dy, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "avg_pool2d", [&]<class T>() {
    avg_pool_gradient(plan, adaptive, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy));
  });
}

namespace {

void check_images(const char* op, const Shape& x, DType dtype) {
  check(is_floating(dtype), "[{}] expected a floating dtype, got {}", op, name_of(dtype));
  check(x.rank() == 4 && x[1] > 0 && x[2] > 0 && x[3] > 0,
        "[{}] expected images (n, height, width, channels) with no size of 0 but n, got {}", op, x);
}

PoolPlan pool_plan(const char* op, const Shape& x, DType dtype, YX kernel, const Window& window) {
  check_images(op, x, dtype);
  const YX in{x[1], x[2]};
  const YX out = window_output_size(op, in, kernel, window);
  check(window.padding.y <= kernel.y / 2 && window.padding.x <= kernel.x / 2,
        "[{}] expected a padding of at most half the kernel {}x{}, got {}x{}", op, kernel.y, kernel.x,
        window.padding.y, window.padding.x);
  return {.images = x[0],
          .channels = x[3],
          .in = in,
          .kernel = kernel,
          .out = out,
          .window = window,
          .dtype = dtype};
}

PoolPlan pool_plan(const char* op, const Tensor& x, YX kernel, const Window& window) {
  common_device(op, {&x});
  return pool_plan(op, x.shape(), x.dtype(), kernel, window);
}

Shape output_shape(const PoolPlan& plan) {
  return {plan.images, plan.out.y, plan.out.x, plan.channels};
}
Shape image_shape(const PoolPlan& plan) {
  return {plan.images, plan.in.y, plan.in.x, plan.channels};
}

Tensor average(const char* op, const Tensor& x, const PoolPlan& plan, bool adaptive) {
  const Device device = x.device();
  const Tensor images = x.detach().contiguous();
  Tensor y = Tensor::empty(output_shape(plan), plan.dtype, device);
  if (plan.images > 0)
    on_backend(device, op, [&]<Backend B>() {
      avg_pool2d_kernel<B>(plan, adaptive, y.bytes(), images.bytes(), current_stream(device));
    });
  if (wants_grad(x)) {
    record(y, op, {&x}, [op, plan, adaptive](const Tensor& g) {
      const Tensor dy = g.contiguous();
      Tensor dx = Tensor::empty(image_shape(plan), plan.dtype, g.device());
      if (plan.images > 0)
        on_backend(g.device(), op, [&]<Backend B>() {
          avg_pool2d_gradient_kernel<B>(plan, adaptive, dx.bytes(), dy.bytes(), current_stream(g.device()));
        });
      return Gradients{dx};
    });
    trace_window(plan.window);
    trace_option("kernel", Dims{plan.kernel.y, plan.kernel.x});
  }
  return y;
}

}  // namespace

PoolPlan max_pool_plan(const Shape& x, DType dtype, YX kernel, const Window& window) {
  const PoolPlan plan = pool_plan("max_pool2d", x, dtype, kernel, window);
  check(kernel.y <= 256 && kernel.x <= 256 && kernel.y * kernel.x <= 256,
        "[max_pool2d] expected a kernel of at most 256 elements, got {}x{}", kernel.y, kernel.x);
  return plan;
}

// Without a gradient, means of bf16 on a GPU are not rounded to bf16 first, which saves a kernel.
Tensor image_mean(const Tensor& x) {
  const auto rounded_mean = [&] {
    return cast(adaptive_avg_pool2d(x, {1, 1}).reshape({x.size(0), x.size(3)}), DType::f32);
  };
  if (wants_grad(x) || x.dtype() != DType::bf16 || x.numel() == 0) return rounded_mean();
  return on_backend(x.device(), "image_mean", [&]<Backend B>() {
    if constexpr (B == Backend::cpu) {
      return rounded_mean();
    } else {
      check_images("image_mean", x.shape(), x.dtype());
      const PoolPlan plan{.images = x.size(0),
                          .channels = x.size(3),
                          .in = {x.size(1), x.size(2)},
                          .out = {1, 1},
                          .dtype = x.dtype()};
      const Tensor images = x.detach().contiguous();
      Tensor y = Tensor::empty({x.size(0), x.size(3)}, DType::f32, x.device());
      bf16_image_mean_kernel<B>(plan, y.data<float>(), images.bytes(), current_stream(x.device()));
      return y;
    }
  });
}

}  // namespace detail

Tensor max_pool2d(const Tensor& x, YX kernel, const Window& window) {
  using namespace detail;
  constexpr const char* op = "max_pool2d";
  const Device device = common_device(op, {&x});
  const PoolPlan plan = max_pool_plan(x.shape(), x.dtype(), kernel, window);
  const Tensor images = x.detach().contiguous();
  Tensor y = Tensor::empty(output_shape(plan), plan.dtype, device);
  const Tensor argmax = wants_grad(x) ? Tensor::empty(output_shape(plan), DType::u8, device) : Tensor();
  if (plan.images > 0)
    on_backend(device, op, [&]<Backend B>() {
      max_pool2d_kernel<B>(plan, y.bytes(), reinterpret_cast<std::uint8_t*>(argmax.bytes()), images.bytes(),
                           current_stream(device));
    });
  if (argmax.defined()) {
    record(y, op, {&x}, [plan, argmax](const Tensor& g) {
      const Tensor dy = g.contiguous();
      Tensor dx = Tensor::empty(image_shape(plan), plan.dtype, g.device());
      if (plan.images > 0)
        on_backend(g.device(), op, [&]<Backend B>() {
          max_pool2d_gradient_kernel<B>(plan, dx.bytes(), dy.bytes(), argmax.data<std::uint8_t>(),
                                        current_stream(g.device()));
        });
      return Gradients{dx};
    });
    trace_window(window);
    trace_option("kernel", Dims{kernel.y, kernel.x});
  }
  return y;
}

Tensor max_pool2d(const Tensor& x, YX kernel) {
  return max_pool2d(x, kernel, {.stride = kernel});
}

Tensor avg_pool2d(const Tensor& x, YX kernel, const Window& window) {
  using namespace detail;
  const PoolPlan plan = pool_plan("avg_pool2d", x, kernel, window);
  check(window.dilation == YX{1, 1}, "[avg_pool2d] expected no dilation, got {}x{}", window.dilation.y,
        window.dilation.x);
  return average("avg_pool2d", x, plan, false);
}

Tensor avg_pool2d(const Tensor& x, YX kernel) {
  return avg_pool2d(x, kernel, {.stride = kernel});
}

Tensor adaptive_avg_pool2d(const Tensor& x, YX out) {
  using namespace detail;
  constexpr const char* op = "adaptive_avg_pool2d";
  common_device(op, {&x});
  check_images(op, x.shape(), x.dtype());
  check(out.y >= 1 && out.x >= 1, "[adaptive_avg_pool2d] expected a result of at least 1x1, got {}x{}", out.y,
        out.x);
  const PoolPlan plan{.images = x.size(0),
                      .channels = x.size(3),
                      .in = {x.size(1), x.size(2)},
                      .out = out,
                      .dtype = x.dtype()};
  return average(op, x, plan, true);
}

}  // namespace tandem
