// Batch norm with ReLU, forward and backward, at the sizes of ResNet-18 with a batch of 8. Bytes per second
// count the minimal traffic: every operand read or written once.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/batch_norm_kernel.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

const bool registered = [] {
  for (Device device : bench_devices()) {
    for (const auto& [size, channels] : {std::pair{112, 64}, {56, 64}, {28, 128}, {14, 256}, {7, 512}}) {
      const Shape shape{8, size, size, channels};
      const auto x = [=] { return full(shape, 0.5, DType::f32, device); };
      const auto parameter = [=, c = channels] { return full({c}, 1.0, DType::f32, device); };
      const detail::BatchNormPlan plan{.rows = 8L * size * size,
                                       .channels = channels,
                                       .options = {.training = true, .activation = FusedActivation::relu}};
      const auto name = [&](const char* what) {
        return fmt::format("batch_norm {}/{}x{}x{}/{}", what, size, size, channels, name_of(device));
      };
      add_bench(name("forward"), device, {.bytes = 3 * shape.numel() * 4}, [=]() -> Operation {
        return [x = x(), p = parameter(),
                running = BatchNormStatistics{.mean = parameter(), .variance = parameter()}]() mutable {
          return batch_norm(x, p, p, running, {.activation = FusedActivation::relu});
        };
      });
      add_bench(name("backward"), device, {.bytes = 7 * shape.numel() * 4}, [=]() -> Operation {
        return [=, x = x(), y = x(), dy = x(), dx = x(), weight = parameter(), mean = parameter(),
                inverse = parameter(), dweight = parameter(), dbias = parameter()] {
          const detail::BatchNormBackward args{.dx = dx.bytes(),
                                               .dresidual = nullptr,
                                               .dweight = dweight.bytes(),
                                               .dbias = dbias.bytes(),
                                               .dy = dy.bytes(),
                                               .x = x.bytes(),
                                               .y = y.bytes(),
                                               .weight = weight.bytes(),
                                               .mean = mean.bytes(),
                                               .inverse_deviation = inverse.bytes()};
          on_backend(device, "bench", [&]<Backend B>() {
            detail::batch_norm_gradient_kernel<B>(plan, args, current_stream(device));
          });
          return dx;
        };
      });
    }
  }
  return true;
}();

}  // namespace
}  // namespace tandem
