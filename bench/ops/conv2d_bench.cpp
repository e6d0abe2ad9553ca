// The convolutions of ResNet-18 at 224×224 with a batch of 8: forward with the weight packed in every call
// and once, and both gradients. FLOP/s count the operations of direct convolution.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

constexpr std::int64_t images = 8;

struct Layer {
  std::int64_t size, channels, filters, kernel, stride;
};

constexpr Layer layers[] = {{224, 3, 64, 7, 2},   {56, 64, 64, 3, 1},   {56, 64, 128, 3, 2},
                            {28, 128, 128, 3, 1}, {28, 128, 256, 3, 2}, {14, 256, 256, 3, 1},
                            {14, 256, 512, 3, 2}, {7, 512, 512, 3, 1},  {56, 64, 128, 1, 2}};

const bool registered = [] {
  for (Device device : bench_devices())
    for (const Layer& layer : layers) {
      const std::int64_t padding = layer.kernel / 2, out = (layer.size - 1) / layer.stride + 1;
      const Conv2dOptions options{
          .window = {.stride = {layer.stride, layer.stride}, .padding = {padding, padding}}};
      const auto x = [=] {
        return full({images, layer.size, layer.size, layer.channels}, 0.5, DType::f32, device);
      };
      const auto weight = [=] {
        return full({layer.filters, layer.kernel, layer.kernel, layer.channels}, 0.25, DType::f32, device);
      };
      const auto plan = [=] { return detail::conv2d_plan(x(), weight().shape(), options); };
      const auto dy = [=] { return full({images, out, out, layer.filters}, 0.5, DType::f32, device); };
      const Cost cost{.flops = 2.0 * static_cast<double>(images * out * out * layer.filters * layer.kernel *
                                                         layer.kernel * layer.channels)};
      const auto name = [&](const char* what) {
        return fmt::format("conv2d {}/{}x{}x{}/{}/k{}s{}/{}", what, layer.size, layer.size, layer.channels,
                           layer.filters, layer.kernel, layer.stride, name_of(device));
      };
      add_bench(name("prepacked"), device, cost, [=]() -> Operation {
        return [a = x(), f = detail::prepack_conv2d(weight(), {}, options, DType::f32)] {
          return detail::prepacked_conv2d(f, a, {}, true);
        };
      });
      add_bench(name("forward"), device, cost, [=]() -> Operation {
        return [a = x(), b = weight(), options] { return conv2d(a, b, {}, options); };
      });
      add_bench(name("input gradient"), device, cost, [=]() -> Operation {
        return [p = plan(), g = dy(), b = weight(), to = x(), device] {
          on_backend(device, "bench", [&]<Backend B>() {
            detail::conv2d_input_gradient_kernel<B>(p, to.bytes(), g.bytes(), b.bytes(),
                                                    current_stream(device));
          });
          return to;
        };
      });
      add_bench(name("weight gradient"), device, cost, [=]() -> Operation {
        return [p = plan(), g = dy(), a = x(), to = weight(), device] {
          on_backend(device, "bench", [&]<Backend B>() {
            detail::conv2d_weight_gradient_kernel<B>(p, to.bytes(), g.bytes(), a.bytes(),
                                                     current_stream(device));
          });
          return to;
        };
      });
    }
  return true;
}();

}  // namespace
}  // namespace tandem
