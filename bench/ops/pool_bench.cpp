// Pooling: the maximum, the maximum that keeps what the gradient needs, its gradient, and the average. Bytes
// per second count the minimal traffic: every operand read or written once.
#include "tandem/ops/conv/pool.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/pool_kernel.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

struct Case {
  Shape shape;
  std::int64_t size, stride, padding;
};

void add_pooling(const Case& one, DType dtype, Device device) {
  const auto& [shape, size, stride, padding] = one;
  const YX kernel{size, size};
  const Window window{.stride = {stride, stride}, .padding = {padding, padding}};
  const detail::PoolPlan plan = detail::max_pool_plan(shape, dtype, kernel, window);
  const Shape out{plan.images, plan.out.y, plan.out.x, plan.channels};
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t both = (shape.numel() + out.numel()) * bytes, with_argmax = both + out.numel();
  const auto x = [=] { return full(shape, 0.5, dtype, device); };
  const auto y = [=] { return full(out, 0.5, dtype, device); };
  const auto argmax = [=] { return full(out, 0, DType::u8, device); };
  const auto name = [&](const char* what) {
    return fmt::format("{} {}x{}/{}x{}x{}x{} {}/{}", what, size, size, shape[0], shape[1], shape[2], shape[3],
                       name_of(dtype), name_of(device));
  };
  add_bench(name("max_pool2d"), device, {.bytes = both},
            [=]() -> Operation { return [=, x = x()] { return max_pool2d(x, kernel, window); }; });
  add_bench(name("max_pool2d with argmax"), device, {.bytes = with_argmax}, [=]() -> Operation {
    return [=, x = x(), y = y(), argmax = argmax()] {
      on_backend(device, "bench", [&]<Backend B>() {
        detail::max_pool2d_kernel<B>(plan, y.bytes(), argmax.data<std::uint8_t>(), x.bytes(),
                                     current_stream(device));
      });
      return y;
    };
  });
  add_bench(name("max_pool2d gradient"), device, {.bytes = with_argmax}, [=]() -> Operation {
    return [=, dx = x(), dy = y(), argmax = argmax()] {
      on_backend(device, "bench", [&]<Backend B>() {
        detail::max_pool2d_gradient_kernel<B>(plan, dx.bytes(), dy.bytes(), argmax.data<std::uint8_t>(),
                                              current_stream(device));
      });
      return dx;
    };
  });
  add_bench(name("avg_pool2d"), device, {.bytes = both},
            [=]() -> Operation { return [=, x = x()] { return avg_pool2d(x, kernel, window); }; });
}

const bool registered = [] {
  for (const Device device : bench_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Case& one :
           {Case{{8, 112, 112, 64}, 3, 2, 1}, {{8, 14, 14, 512}, 3, 1, 1}, {{64, 28, 28, 6}, 2, 2, 0}})
        add_pooling(one, dtype, device);
      const Shape images{8, 7, 7, 512};
      add_bench(fmt::format("adaptive_avg_pool2d/8x7x7x512 {}/{}", name_of(dtype), name_of(device)), device,
                {.bytes = images.numel() * static_cast<std::int64_t>(size_of(dtype))}, [=]() -> Operation {
                  return [x = full(images, 0.5, dtype, device)] { return adaptive_avg_pool2d(x, {1, 1}); };
                });
    }
  return true;
}();

}  // namespace
}  // namespace tandem
