// The convolutions of ResNet-18 and ResNet-50 at 224×224 in 8-bit integers on a GPU, ten calls each, with the
// rate of the bytes that must be read and written. BENCH_BATCH is the batch size (256).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "bench/ops/op_bench.h"
#include "tandem/ops/conv/quantized_conv.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

using namespace detail;

constexpr int calls = 10;

struct Layer {
  std::int64_t size, channels, filters, kernel, stride;
  bool has_residual;
};
constexpr Layer layers[] = {
    {56, 64, 64, 3, 1, false},    {56, 64, 64, 3, 1, true},    {56, 64, 128, 3, 2, false},
    {28, 128, 128, 3, 1, false},  {28, 128, 128, 3, 1, true},  {28, 128, 256, 3, 2, false},
    {14, 256, 256, 3, 1, false},  {14, 256, 256, 3, 1, true},  {14, 256, 512, 3, 2, false},
    {7, 512, 512, 3, 1, false},   {7, 512, 512, 3, 1, true},   {56, 64, 128, 1, 2, false},
    {28, 128, 256, 1, 2, false},  {56, 64, 64, 1, 1, false},   {56, 64, 256, 1, 1, false},
    {56, 64, 256, 1, 1, true},    {56, 256, 64, 1, 1, false},  {56, 256, 128, 1, 1, false},
    {56, 128, 128, 3, 2, false},  {56, 256, 512, 1, 2, false}, {28, 128, 512, 1, 1, true},
    {28, 512, 128, 1, 1, false},  {28, 512, 256, 1, 1, false}, {28, 256, 256, 3, 2, false},
    {28, 512, 1024, 1, 2, false}, {14, 256, 1024, 1, 1, true}, {14, 1024, 256, 1, 1, false},
    {14, 1024, 512, 1, 1, false}, {14, 512, 512, 3, 2, false}, {14, 1024, 2048, 1, 2, false},
    {7, 512, 2048, 1, 1, true},   {7, 2048, 512, 1, 1, false}};

Tensor bytes(const Shape& shape, std::uint64_t seed) {
  return random_integers(shape, 0, 256, {.seed = seed, .dtype = DType::u8, .device = cuda_device()});
}

Operation repeated(const Operation& call) {
  return [call] {
    for (int i = 1; i < calls; ++i) call();
    return call();
  };
}

Operation layer_operation(const Layer& layer, std::int64_t images) {
  const std::int64_t out = (layer.size - 1) / layer.stride + 1;
  const QuantizedWeight weight =
      quantize_weight(normal({layer.filters, layer.kernel, layer.kernel, layer.channels}, 0, 1, {.seed = 1}));
  const Tensor bias = normal({layer.filters}, 0, 1, {.seed = 2}).to(cuda_device());
  const Conv2dOptions options{.window = {.stride = layer.stride, .padding = layer.kernel / 2}};
  QuantizedResidual residual;
  if (layer.has_residual) residual = {bytes({images, out, out, layer.filters}, 4), {0.02f, 0}};
  return repeated(
      [x = bytes({images, layer.size, layer.size, layer.channels}, 3), residual,
       conv = prepack_quantized_conv2d({weight.stored.to(cuda_device()), weight.scale.to(cuda_device())},
                                       bias, options, {0.03f, 0}, {0.05f, 0})] {
        return quantized_conv2d(conv, x, FusedActivation::relu, residual);
      });
}

Operation stem_operation(std::int64_t images) {
  const QuantizedWeight weight = quantize_weight(normal({64, 7, 7, 3}, 0, 0.1, {.seed = 1}));
  const Tensor bias = normal({64}, 0, 1, {.seed = 2, .device = cuda_device()});
  const Conv2dOptions options{.window = {.stride = 2, .padding = 3}};
  return repeated(
      [x = normal({images, 224, 224, 3}, 0, 1, {.seed = 3, .dtype = DType::bf16, .device = cuda_device()}),
       conv = prepack_quantized_conv2d({weight.stored.to(cuda_device()), weight.scale.to(cuda_device())},
                                       bias, options, {0.03f, 128}, {0.02f, 0})] {
        return quantized_stem(conv, x, {3, 3}, {.stride = 2, .padding = 1});
      });
}

void register_all() {
  if (cuda_device_count() == 0) return;
  const char* const text = std::getenv("BENCH_BATCH");
  const std::int64_t images = text ? std::atoll(text) : 256;
  add_bench(fmt::format("quantized stem x{}", calls), cuda_device(),
            {.bytes = calls * images * (224 * 224 * 3 * 2 + 56 * 56 * 64)},
            [=] { return stem_operation(images); });
  for (const Layer& layer : layers) {
    const std::int64_t out = (layer.size - 1) / layer.stride + 1,
                       x = images * layer.size * layer.size * layer.channels /
                           (layer.kernel == 1 ? layer.stride * layer.stride : 1),
                       y = images * out * out * layer.filters,
                       depth = layer.kernel * layer.kernel * layer.channels;
    add_bench(
        fmt::format("quantized {}² {}→{} {}x{}/{}{} x{}", layer.size, layer.channels, layer.filters,
                    layer.kernel, layer.kernel, layer.stride, layer.has_residual ? " residual" : "", calls),
        cuda_device(),
        {.bytes = calls * (x + y * (layer.has_residual ? 2 : 1) + layer.filters * depth),
         .flops = 2.0 * calls * static_cast<double>(y) * static_cast<double>(depth)},
        [=] { return layer_operation(layer, images); });
  }
}

const bool registered = (register_all(), true);

}  // namespace
}  // namespace tandem
