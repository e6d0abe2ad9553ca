#include "tandem/ops/conv/image_scale.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/image_scale_kernel.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace detail {
namespace {

// Channels that are summed at a time, in registers and the L1 cache, and pixels per block of a sum: blocks
// keep the rounding of long sums small.
constexpr std::int64_t channel_chunk = 64, pixel_block = 64;

template <class T, class C = ComputeType<T>>
[[gnu::always_inline]] inline void sum_chunk(const ImageScalePlan& plan, const T* a, const T* b,
                                             std::int64_t count, C* __restrict total) {
  for (std::int64_t c = 0; c < count; ++c) total[c] = C{0};
  for (std::int64_t first = 0; first < plan.pixels; first += pixel_block) {
    C sum[channel_chunk] = {};
    for (std::int64_t pixel = first; pixel < std::min(first + pixel_block, plan.pixels); ++pixel) {
      const T* __restrict from = a + pixel * plan.channels;
      const T* __restrict other = b ? b + pixel * plan.channels : nullptr;
      if (other)
        for (std::int64_t c = 0; c < count; ++c) sum[c] += convert<C>(from[c]) * convert<C>(other[c]);
      else
        for (std::int64_t c = 0; c < count; ++c) sum[c] += convert<C>(from[c]);
    }
    for (std::int64_t c = 0; c < count; ++c) total[c] += sum[c];
  }
}

}  // namespace

template <>
void image_sums_kernel<Backend::cpu>(const ImageScalePlan& plan, const ImageSums& args, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "squeeze_excite", [&]<class T>() {
    using C = ComputeType<T>;
    const std::int64_t chunks = (plan.channels + channel_chunk - 1) / channel_chunk;
    const std::int64_t grain = std::max<std::int64_t>((1 << 14) / (plan.pixels * channel_chunk), 1);
    parallel_for(plan.images * chunks, grain, [&](std::int64_t begin, std::int64_t end) {
      with_simd([&]<std::size_t>() __attribute__((always_inline)) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const std::int64_t image = unit / chunks, first = unit % chunks * channel_chunk;
          const std::int64_t count = std::min(channel_chunk, plan.channels - first);
          const std::int64_t at = image * plan.pixels * plan.channels + first;
          C total[channel_chunk];
          sum_chunk(plan, reinterpret_cast<const T*>(args.a) + at,
                    args.b ? reinterpret_cast<const T*>(args.b) + at : nullptr, count, total);
          C* const to = reinterpret_cast<C*>(args.sums) + image * plan.channels + first;
          for (std::int64_t c = 0; c < count; ++c) to[c] = total[c] * static_cast<C>(args.factor);
        }
      });
    });
  });
}

template <>
void image_scale_kernel<Backend::cpu>(const ImageScalePlan& plan, const ImageScale& args, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "scale_images", [&]<class T>() {
    using C = ComputeType<T>;
    const std::int64_t channels = plan.channels;
    const std::int64_t grain = std::max<std::int64_t>((1 << 14) / channels, 1);
    parallel_for(plan.images * plan.pixels, grain, [&](std::int64_t begin, std::int64_t end) {
      with_simd([&]<std::size_t>() __attribute__((always_inline)) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t image = row / plan.pixels, at = row * channels;
          const T* __restrict x = reinterpret_cast<const T*>(args.x) + at;
          const T* __restrict residual =
              args.residual ? reinterpret_cast<const T*>(args.residual) + at : nullptr;
          const C* __restrict factors =
              reinterpret_cast<const C*>(args.factors) + (args.per_channel ? image * channels : image);
          const C* __restrict shift =
              args.shift ? reinterpret_cast<const C*>(args.shift) + image * channels : nullptr;
          T* __restrict y = reinterpret_cast<T*>(args.y) + at;
          const auto write = [&](auto factor, auto added) __attribute__((always_inline)) {
            for (std::int64_t c = 0; c < channels; ++c)
              y[c] = convert<T>(convert<C>(x[c]) * factor(c) + added(c));
          };
          const auto with_factor = [&](auto factor) __attribute__((always_inline)) {
            const auto shift_factor = static_cast<C>(args.shift_factor);
            if (shift)
              write(
                  factor, [&](std::int64_t c)
                              __attribute__((always_inline)) { return shift[c] * shift_factor; });
            else if (residual)
              write(
                  factor, [&](std::int64_t c)
                              __attribute__((always_inline)) { return convert<C>(residual[c]); });
            else
              write(
                  factor, [&](std::int64_t) __attribute__((always_inline)) { return C{0}; });
          };
          if (args.per_channel)
            with_factor([&](std::int64_t c) __attribute__((always_inline)) { return factors[c]; });
          else
            with_factor([factor = factors[0]](std::int64_t)
                            __attribute__((always_inline)) { return factor; });
        }
      });
    });
  });
}

namespace {

DType factor_dtype(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

Tensor image_sums(const ImageScalePlan& plan, const Tensor& a, const Tensor& b, double factor) {
  Tensor sums = Tensor::empty({plan.images, plan.channels}, factor_dtype(a), a.device());
  if (a.numel() == 0) return sums;
  on_backend(a.device(), "squeeze_excite", [&]<Backend B>() {
    image_sums_kernel<B>(plan, {sums.bytes(), a.bytes(), b.bytes(), factor}, current_stream(a.device()));
  });
  return sums;
}

struct Shift {
  Tensor values = {};
  double factor = 0;
};

Tensor scaled(const ImageScalePlan& plan, const Tensor& x, const Tensor& factors, const Shift& shift,
              const Tensor& residual) {
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (x.numel() == 0) return y;
  const ImageScale args{.y = y.bytes(),
                        .x = x.bytes(),
                        .factors = factors.bytes(),
                        .per_channel = factors.rank() == 2,
                        .shift = shift.values.bytes(),
                        .shift_factor = shift.factor,
                        .residual = residual.bytes()};
  on_backend(x.device(), "scale_images",
             [&]<Backend B>() { image_scale_kernel<B>(plan, args, current_stream(x.device())); });
  return y;
}

// What the gradient of the product leaves for that of the means, which comes after it: dx is computed there,
// in one pass.
struct SqueezeState {
  Tensor factors;
  Tensor gradient;
};

}  // namespace
}  // namespace detail

Tensor squeeze_excite(const Tensor& x, const ExcitationFunction& excite) {
  using namespace detail;
  common_device("squeeze_excite", {&x});
  check(is_floating(x.dtype()) && x.rank() == 4 && x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0,
        "[squeeze_excite] expected floating images (n, height, width, channels) with no size of 0 but n, got "
        "{} "
        "{}",
        name_of(x.dtype()), x.shape());
  const ImageScalePlan plan{
      .images = x.size(0), .pixels = x.size(1) * x.size(2), .channels = x.size(3), .dtype = x.dtype()};
  const Tensor images = x.detach().contiguous();
  const double share = 1.0 / static_cast<double>(plan.pixels);
  Tensor means = image_sums(plan, images, {}, share);
  const auto state = std::allocate_shared<SqueezeState>(RecyclingAllocator<SqueezeState>());
  const bool x_grad = wants_grad(x);
  if (x_grad)
    record(means, "squeeze", {&x}, [plan, state, share](const Tensor& g) {
      expect(state->gradient.defined());
      Tensor dx = scaled(plan, state->gradient, state->factors, {g.contiguous(), share}, {});
      state->gradient = Tensor();
      return Gradients{dx};
    });
  const Tensor factors = excite(means);
  common_device("squeeze_excite", {&x, &factors});
  check(factors.shape() == means.shape() && factors.dtype() == means.dtype(),
        "[squeeze_excite] expected factors {} of {}, got {} of {}", means.shape(), name_of(means.dtype()),
        factors.shape(), name_of(factors.dtype()));
  state->factors = factors.detach().contiguous();
  Tensor y = scaled(plan, images, state->factors, {}, {});
  expect(!x_grad || wants_grad(factors));
  if (wants_grad(factors)) {
    record(y, "excite", {&factors}, [plan, images, state, x_grad](const Tensor& g) {
      const Tensor dy = g.contiguous();
      if (x_grad) state->gradient = dy;
      return Gradients{image_sums(plan, dy, images, 1)};
    });
    trace_option("images", x);
  }
  return y;
}

Tensor scale_images(const Tensor& x, const Tensor& factors, const Tensor& residual) {
  using namespace detail;
  common_device("scale_images", {&x, &factors});
  check(is_floating(x.dtype()) && x.rank() >= 1 && factors.rank() == 1 && factors.size(0) == x.size(0) &&
            factors.dtype() == factor_dtype(x),
        "[scale_images] expected x (n, …) and factors (n) of {}, got {} of {} and {} of {}",
        name_of(factor_dtype(x)), x.shape(), name_of(x.dtype()), factors.shape(), name_of(factors.dtype()));
  if (residual.defined()) {
    common_device("scale_images", {&x, &residual});
    common_dtype("scale_images", {&x, &residual});
    check(residual.shape() == x.shape(), "[scale_images] expected a residual of shape {}, got {}", x.shape(),
          residual.shape());
  }
  const std::int64_t channels = x.rank() > 1 ? std::max<std::int64_t>(x.size(-1), 1) : 1;
  const ImageScalePlan plan{.images = x.size(0),
                            .pixels = x.numel() / std::max<std::int64_t>(x.size(0) * channels, 1),
                            .channels = channels,
                            .dtype = x.dtype()};
  const Tensor scale = factors.detach().contiguous();
  Tensor y = scaled(plan, x.detach().contiguous(), scale, {},
                    residual.defined() ? residual.detach().contiguous() : Tensor());
  const bool x_grad = wants_grad(x), residual_grad = residual.defined() && wants_grad(residual);
  if (x_grad || residual_grad)
    record(y, "scale_images", {&x, &residual}, [plan, scale, x_grad, residual_grad](const Tensor& g) {
      return Gradients{x_grad ? scaled(plan, g.contiguous(), scale, {}, {}) : Tensor(),
                       residual_grad ? g : Tensor()};
    });
  return y;
}

}  // namespace tandem
