#include "tandem/ops/pool.h"

#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Channels are worked on in pieces that stay in registers and the first cache.
constexpr std::int64_t piece = 64;

struct Span {
  std::int64_t begin, end;
};

// f(image, y, x) for the pixels of an image of `size`, split over the team.
template <class F>
void for_each_pixel(std::int64_t images, YX size, std::int64_t channels, const F& f) {
  parallel_for(images * size.y * size.x, std::max<std::int64_t>(4096 / channels, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   for (std::int64_t pixel = begin; pixel < end; ++pixel)
                     f(pixel / size.x / size.y, pixel / size.x % size.y, pixel % size.x);
                 });
               });
}

template <class T, class C>
[[gnu::always_inline]] inline void store(T* to, const C* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<T>(from[i]);
}

// One axis of a sliding window.
struct Axis {
  std::int64_t in, kernel, stride, padding, dilation, out;

  // Places of the kernel that lie inside the image for result `o`.
  Span places(std::int64_t o) const {
    const std::int64_t first = o * stride - padding;
    return {first >= 0 ? 0 : (-first + dilation - 1) / dilation,
            std::min(kernel, (in - first + dilation - 1) / dilation)};
  }
  // Results whose windows reach over position i; not each has a place there when dilated.
  Span results(std::int64_t i) const {
    const std::int64_t reach = dilation * (kernel - 1), at = i + padding;
    return {at <= reach ? 0 : (at - reach + stride - 1) / stride, std::min(out, at / stride + 1)};
  }
};

Axis vertical(const PoolPlan& plan) {
  return {plan.in.y, plan.kernel.y, plan.window.stride.y, plan.window.padding.y, plan.window.dilation.y,
          plan.out.y};
}
Axis horizontal(const PoolPlan& plan) {
  return {plan.in.x, plan.kernel.x, plan.window.stride.x, plan.window.padding.x, plan.window.dilation.x,
          plan.out.x};
}

template <class T>
void max_pool(const PoolPlan& plan, T* y, std::uint8_t* winners, const T* x) {
  using C = ComputeType<T>;
  const Axis down = vertical(plan), across = horizontal(plan);
  for_each_pixel(
      plan.images, plan.out, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const Span rows = down.places(row), columns = across.places(column);
        const std::int64_t pixel = (image * plan.out.y + row) * plan.out.x + column;
        for (std::int64_t c = 0; c < plan.channels; c += piece) {
          const std::int64_t count = std::min(piece, plan.channels - c);
          C best[piece];
          std::int32_t who[piece];
          const auto none = static_cast<std::int32_t>(rows.begin * plan.kernel.x + columns.begin);
          for (std::int64_t i = 0; i < piece; ++i)
            best[i] = -std::numeric_limits<C>::infinity(), who[i] = none;
          for (std::int64_t ky = rows.begin; ky < rows.end; ++ky)
            for (std::int64_t kx = columns.begin; kx < columns.end; ++kx) {
              const std::int64_t from_y = row * down.stride - down.padding + ky * down.dilation;
              const std::int64_t from_x = column * across.stride - across.padding + kx * across.dilation;
              const T* from = x + ((image * plan.in.y + from_y) * plan.in.x + from_x) * plan.channels + c;
              const auto place = static_cast<std::int32_t>(ky * plan.kernel.x + kx);
              for (std::int64_t i = 0; i < count; ++i) {
                const C value = convert<C>(from[i]);
                const bool wins = (value > best[i]) | (value != value);
                best[i] = wins ? value : best[i];
                who[i] = wins ? place : who[i];
              }
            }
          store(y + pixel * plan.channels + c, best, count);
          if (winners)
            for (std::int64_t i = 0; i < count; ++i)
              winners[pixel * plan.channels + c + i] = static_cast<std::uint8_t>(who[i]);
        }
      });
}

// Every pixel of x collects from the windows over it, so no two threads write one place.
template <class T>
void max_pool_gradient(const PoolPlan& plan, T* dx, const T* dy, const std::uint8_t* winners) {
  using C = ComputeType<T>;
  const Axis down = vertical(plan), across = horizontal(plan);
  for_each_pixel(
      plan.images, plan.in, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const Span rows = down.results(row), columns = across.results(column);
        const std::int64_t pixel = (image * plan.in.y + row) * plan.in.x + column;
        for (std::int64_t c = 0; c < plan.channels; c += piece) {
          const std::int64_t count = std::min(piece, plan.channels - c);
          C sum[piece] = {};
          for (std::int64_t oy = rows.begin; oy < rows.end; ++oy)
            for (std::int64_t ox = columns.begin; ox < columns.end; ++ox) {
              const std::int64_t ky = row + down.padding - oy * down.stride;
              const std::int64_t kx = column + across.padding - ox * across.stride;
              if (ky % down.dilation != 0 || kx % across.dilation != 0) continue;
              const auto place =
                  static_cast<std::int32_t>(ky / down.dilation * plan.kernel.x + kx / across.dilation);
              const std::int64_t from = ((image * plan.out.y + oy) * plan.out.x + ox) * plan.channels + c;
              for (std::int64_t i = 0; i < count; ++i)
                sum[i] += winners[from + i] == place ? convert<C>(dy[from + i]) : C{0};
            }
          store(dx + pixel * plan.channels + c, sum, count);
        }
      });
}

// How results and positions of an axis belong together when means are taken.
struct Parts {
  Axis axis;
  bool adaptive;

  Span positions(std::int64_t o) const {
    if (adaptive) return {o * axis.in / axis.out, ((o + 1) * axis.in + axis.out - 1) / axis.out};
    const std::int64_t first = o * axis.stride - axis.padding;
    return {std::max<std::int64_t>(first, 0), std::min(first + axis.kernel, axis.in)};
  }
  Span results(std::int64_t i) const {
    if (adaptive) return {i * axis.out / axis.in, ((i + 1) * axis.out + axis.in - 1) / axis.in};
    return axis.results(i);
  }
  // What outside counts as zeros is part of the size.
  std::int64_t size(std::int64_t o) const {
    if (!adaptive) return axis.kernel;
    const Span span = positions(o);
    return span.end - span.begin;
  }
};

template <class T>
void avg_pool(const PoolPlan& plan, bool adaptive, T* y, const T* x) {
  using C = ComputeType<T>;
  const Parts down{vertical(plan), adaptive}, across{horizontal(plan), adaptive};
  for_each_pixel(
      plan.images, plan.out, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const Span rows = down.positions(row), columns = across.positions(column);
        const auto size = static_cast<C>(down.size(row) * across.size(column));
        const std::int64_t pixel = (image * plan.out.y + row) * plan.out.x + column;
        for (std::int64_t c = 0; c < plan.channels; c += piece) {
          const std::int64_t count = std::min(piece, plan.channels - c);
          C sum[piece] = {};
          for (std::int64_t from_y = rows.begin; from_y < rows.end; ++from_y)
            for (std::int64_t from_x = columns.begin; from_x < columns.end; ++from_x) {
              const T* from = x + ((image * plan.in.y + from_y) * plan.in.x + from_x) * plan.channels + c;
              for (std::int64_t i = 0; i < count; ++i) sum[i] += convert<C>(from[i]);
            }
          for (std::int64_t i = 0; i < count; ++i) sum[i] /= size;
          store(y + pixel * plan.channels + c, sum, count);
        }
      });
}

template <class T>
void avg_pool_gradient(const PoolPlan& plan, bool adaptive, T* dx, const T* dy) {
  using C = ComputeType<T>;
  const Parts down{vertical(plan), adaptive}, across{horizontal(plan), adaptive};
  for_each_pixel(
      plan.images, plan.in, plan.channels,
      [&](std::int64_t image, std::int64_t row, std::int64_t column) __attribute__((always_inline)) {
        const Span rows = down.results(row), columns = across.results(column);
        const std::int64_t pixel = (image * plan.in.y + row) * plan.in.x + column;
        for (std::int64_t c = 0; c < plan.channels; c += piece) {
          const std::int64_t count = std::min(piece, plan.channels - c);
          C sum[piece] = {};
          for (std::int64_t oy = rows.begin; oy < rows.end; ++oy)
            for (std::int64_t ox = columns.begin; ox < columns.end; ++ox) {
              const T* from = dy + ((image * plan.out.y + oy) * plan.out.x + ox) * plan.channels + c;
              const auto share = static_cast<C>(1.0 / static_cast<double>(down.size(oy) * across.size(ox)));
              for (std::int64_t i = 0; i < count; ++i) sum[i] += convert<C>(from[i]) * share;
            }
          store(dx + pixel * plan.channels + c, sum, count);
        }
      });
}

}  // namespace

template <>
void max_pool2d_kernel<Backend::cpu>(const PoolPlan& plan, std::byte* y, std::uint8_t* winners,
                                     const std::byte* x, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "max_pool2d", [&]<class T>() {
    max_pool(plan, reinterpret_cast<T*>(y), winners, reinterpret_cast<const T*>(x));
  });
}

template <>
void max_pool2d_gradient_kernel<Backend::cpu>(const PoolPlan& plan, std::byte* dx, const std::byte* dy,
                                              const std::uint8_t* winners, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "max_pool2d", [&]<class T>() {
    max_pool_gradient(plan, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(dy), winners);
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

void check_images(const char* op, const Tensor& x) {
  common_device(op, {&x});
  check(is_floating(x.dtype()), "[{}] expected a floating dtype, got {}", op, name_of(x.dtype()));
  check(x.rank() == 4 && x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0,
        "[{}] expected images (n, height, width, channels) with no size of 0 but n, got {}", op,
        x.shape().to_string());
}

PoolPlan pool_plan(const char* op, const Tensor& x, YX kernel, const Window& window) {
  check_images(op, x);
  const YX in{x.size(1), x.size(2)};
  const YX out = window_places(op, in, kernel, window);
  check(window.padding.y <= kernel.y / 2 && window.padding.x <= kernel.x / 2,
        "[{}] expected a padding of at most half the kernel {}x{}, got {}x{}", op, kernel.y, kernel.x,
        window.padding.y, window.padding.x);
  return {.images = x.size(0),
          .channels = x.size(3),
          .in = in,
          .kernel = kernel,
          .out = out,
          .window = window,
          .dtype = x.dtype()};
}

Shape result_shape(const PoolPlan& plan) {
  return {plan.images, plan.out.y, plan.out.x, plan.channels};
}
Shape image_shape(const PoolPlan& plan) {
  return {plan.images, plan.in.y, plan.in.x, plan.channels};
}

Tensor mean_pool(const char* op, const Tensor& x, const PoolPlan& plan, bool adaptive) {
  const Device device = x.device();
  const Tensor images = x.detach().contiguous();
  Tensor y = Tensor::empty(result_shape(plan), plan.dtype, device);
  if (plan.images > 0)
    on_backend(device, op, [&]<Backend B>() {
      avg_pool2d_kernel<B>(plan, adaptive, y.bytes(), images.bytes(), current_stream(device));
    });
  if (wants_grad(x))
    record(y, op, {&x}, [op, plan, adaptive](const Tensor& g) {
      const Tensor dy = g.contiguous();
      Tensor dx = Tensor::empty(image_shape(plan), plan.dtype, g.device());
      if (plan.images > 0)
        on_backend(g.device(), op, [&]<Backend B>() {
          avg_pool2d_gradient_kernel<B>(plan, adaptive, dx.bytes(), dy.bytes(), current_stream(g.device()));
        });
      return Gradients{dx};
    });
  return y;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, YX kernel, const Window& window) {
  constexpr const char* op = "max_pool2d";
  const PoolPlan plan = pool_plan(op, x, kernel, window);
  check(kernel.y <= 256 && kernel.x <= 256 && kernel.y * kernel.x <= 256,
        "[max_pool2d] expected a kernel of at most 256 places, got {}x{}", kernel.y, kernel.x);
  const Device device = x.device();
  const Tensor images = x.detach().contiguous();
  Tensor y = Tensor::empty(result_shape(plan), plan.dtype, device);
  const Tensor winners = wants_grad(x) ? Tensor::empty(result_shape(plan), DType::u8, device) : Tensor();
  if (plan.images > 0)
    on_backend(device, op, [&]<Backend B>() {
      max_pool2d_kernel<B>(plan, y.bytes(), reinterpret_cast<std::uint8_t*>(winners.bytes()), images.bytes(),
                           current_stream(device));
    });
  if (winners.defined())
    record(y, op, {&x}, [plan, winners](const Tensor& g) {
      const Tensor dy = g.contiguous();
      Tensor dx = Tensor::empty(image_shape(plan), plan.dtype, g.device());
      if (plan.images > 0)
        on_backend(g.device(), op, [&]<Backend B>() {
          max_pool2d_gradient_kernel<B>(plan, dx.bytes(), dy.bytes(), winners.data<std::uint8_t>(),
                                        current_stream(g.device()));
        });
      return Gradients{dx};
    });
  return y;
}

Tensor avg_pool2d(const Tensor& x, YX kernel, const Window& window) {
  const PoolPlan plan = pool_plan("avg_pool2d", x, kernel, window);
  check(window.dilation == YX{1, 1}, "[avg_pool2d] expected no dilation, got {}x{}", window.dilation.y,
        window.dilation.x);
  return mean_pool("avg_pool2d", x, plan, false);
}

Tensor adaptive_avg_pool2d(const Tensor& x, YX out) {
  constexpr const char* op = "adaptive_avg_pool2d";
  check_images(op, x);
  check(out.y >= 1 && out.x >= 1, "[adaptive_avg_pool2d] expected a result of at least 1x1, got {}x{}", out.y,
        out.x);
  const PoolPlan plan{.images = x.size(0),
                      .channels = x.size(3),
                      .in = {x.size(1), x.size(2)},
                      .out = out,
                      .dtype = x.dtype()};
  return mean_pool(op, x, plan, true);
}

}  // namespace tandem
