// The convolutions of ResNet-18 and depthwise ones of MobileNetV3 and EfficientNet-B0 at 224×224 with a batch
// of 8 (256 for depthwise ones in bf16 on CUDA): forward with the weight packed in every call and once,
// and both gradients. FLOP/s count the operations of direct convolution.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/ops/op_bench.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

struct Layer {
  std::int64_t size, channels, filters, kernel, stride;
};

constexpr Layer layers[] = {{224, 3, 64, 7, 2},   {56, 64, 64, 3, 1},   {56, 64, 128, 3, 2},
                            {28, 128, 128, 3, 1}, {28, 128, 256, 3, 2}, {14, 256, 256, 3, 1},
                            {14, 256, 512, 3, 2}, {7, 512, 512, 3, 1},  {56, 64, 128, 1, 2}};
constexpr Layer depthwise_layers[] = {{112, 32, 32, 3, 1},  {112, 96, 96, 3, 2},  {56, 144, 144, 3, 1},
                                      {56, 72, 72, 5, 2},   {28, 240, 240, 5, 1}, {14, 480, 480, 3, 1},
                                      {14, 672, 672, 5, 2}, {7, 960, 960, 5, 1}};

void add_layer(const Layer& layer, std::int64_t groups, std::int64_t images, DType dtype, Device device) {
  const std::int64_t padding = layer.kernel / 2, out = (layer.size - 1) / layer.stride + 1;
  const Conv2dOptions options{
      .window = {.stride = {layer.stride, layer.stride}, .padding = {padding, padding}}, .groups = groups};
  const auto x = [=] { return full({images, layer.size, layer.size, layer.channels}, 0.5, dtype, device); };
  const auto weight = [=](DType of) {
    return full({layer.filters, layer.kernel, layer.kernel, layer.channels / groups}, 0.25, of, device);
  };
  const auto plan = [=] { return detail::conv2d_plan(x(), weight(dtype).shape(), options); };
  const auto dy = [=] { return full({images, out, out, layer.filters}, 0.5, dtype, device); };
  const std::int64_t results = images * out * out * layer.filters;
  const Cost cost{
      .bytes = (images * layer.size * layer.size * layer.channels + results) *
               static_cast<std::int64_t>(size_of(dtype)),
      .flops = 2.0 * static_cast<double>(results * layer.kernel * layer.kernel * layer.channels / groups)};
  const auto name = [&](const char* what) {
    return fmt::format("{} {}/{}x{}x{}/{}/k{}s{}/{}{}", groups > 1 ? "depthwise" : "conv2d", what, layer.size,
                       layer.size, layer.channels, layer.filters, layer.kernel, layer.stride, name_of(device),
                       dtype == DType::f32 ? "" : fmt::format(" {} batch {}", name_of(dtype), images));
  };
  add_bench(name("prepacked"), device, cost, [=]() -> Operation {
    return [a = x(), f = detail::prepack_conv2d(weight(dtype), {}, options, dtype)] {
      return detail::prepacked_conv2d(f, a, {}, FusedActivation::relu);
    };
  });
  add_bench(name("forward"), device, cost, [=]() -> Operation {
    return [a = x(), b = weight(dtype), options] { return conv2d(a, b, {}, options); };
  });
  add_bench(name("input gradient"), device, cost, [=]() -> Operation {
    return [p = plan(), g = dy(), b = weight(dtype), to = x(), device] {
      on_backend(device, "bench", [&]<Backend B>() {
        detail::conv2d_input_gradient_kernel<B>(p, to.bytes(), g.bytes(), b.bytes(), current_stream(device));
      });
      return to;
    };
  });
  add_bench(name("weight gradient"), device, cost, [=]() -> Operation {
    return [p = plan(), g = dy(), a = x(), to = weight(DType::f32), device] {
      on_backend(device, "bench", [&]<Backend B>() {
        detail::conv2d_weight_gradient_kernel<B>(p, to.bytes(), g.bytes(), a.bytes(), current_stream(device));
      });
      return to;
    };
  });
}

const bool registered = [] {
  for (const Device device : bench_devices()) {
    for (const Layer& layer : layers) add_layer(layer, 1, 8, DType::f32, device);
    for (const Layer& layer : depthwise_layers) {
      add_layer(layer, layer.channels, 8, DType::f32, device);
      add_layer(layer, layer.channels, device.is_cuda() ? 256 : 8, DType::bf16, device);
    }
  }
  return true;
}();

}  // namespace
}  // namespace tandem
