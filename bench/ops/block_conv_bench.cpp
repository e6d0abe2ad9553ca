// The convolutions of ResNet-18 and ResNet-50 at 224×224 on the CPU: fp32, bf16 and 8-bit integers with
// packed weights, on one thread, two and all. FLOP/s count the operations of direct convolution.
// TANDEM_MATRIX selects the instructions; BENCH_BATCH the batch size (8).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

struct Layer {
  const char* model;
  std::int64_t size, channels, filters, kernel, stride;
};

constexpr Layer layers[] = {
    {"resnet18", 224, 3, 64, 7, 2},    {"resnet18", 56, 64, 64, 3, 1},    {"resnet18", 56, 64, 128, 3, 2},
    {"resnet18", 28, 128, 128, 3, 1},  {"resnet18", 28, 128, 256, 3, 2},  {"resnet18", 14, 256, 256, 3, 1},
    {"resnet18", 14, 256, 512, 3, 2},  {"resnet18", 7, 512, 512, 3, 1},   {"resnet18", 56, 64, 128, 1, 2},
    {"resnet18", 14, 256, 512, 1, 2},  {"resnet50", 56, 64, 64, 1, 1},    {"resnet50", 56, 64, 256, 1, 1},
    {"resnet50", 56, 256, 64, 1, 1},   {"resnet50", 56, 256, 128, 1, 1},  {"resnet50", 56, 128, 128, 3, 2},
    {"resnet50", 28, 128, 512, 1, 1},  {"resnet50", 28, 512, 128, 1, 1},  {"resnet50", 28, 256, 256, 3, 2},
    {"resnet50", 14, 256, 1024, 1, 1}, {"resnet50", 14, 1024, 256, 1, 1}, {"resnet50", 14, 512, 512, 3, 2},
    {"resnet50", 7, 512, 2048, 1, 1},  {"resnet50", 7, 2048, 512, 1, 1}};

Conv2dOptions options_of(const Layer& layer) {
  const std::int64_t padding = layer.kernel / 2;
  return {.window = {.stride = layer.stride, .padding = padding}};
}

Operation fp32_operation(const Layer& layer, std::int64_t images) {
  const Tensor weight = full({layer.filters, layer.kernel, layer.kernel, layer.channels}, 0.25);
  return [x = full({images, layer.size, layer.size, layer.channels}, 0.5),
          conv = detail::prepack_conv2d(weight, full({layer.filters}, 0.5), options_of(layer), DType::f32)] {
    return detail::prepacked_conv2d(conv, x, {}, FusedActivation::relu);
  };
}

Operation block_operation(const Layer& layer, std::int64_t images, MatrixType type) {
  using namespace detail;
  const bool is_bf16 = type == MatrixType::bf16;
  const DType dtype = is_bf16 ? DType::bf16 : DType::u8;
  const Tensor x = full({images, layer.size, layer.size, layer.channels}, is_bf16 ? 0.5 : 40, dtype);
  const Tensor weight =
      full({layer.filters, layer.kernel, layer.kernel, layer.channels}, is_bf16 ? 0.25 : 30, dtype);
  const Conv2dPlan plan =
      conv2d_plan(Tensor::empty(x.shape(), DType::f32), weight.shape(), options_of(layer));
  Tensor packed = Tensor::empty({block_conv_weight_bytes(plan, type)}, DType::u8);
  pack_block_conv_weight(plan, type, packed.bytes(), weight.bytes());
  return [=, bias = full({layer.filters}, 0.5), scale = full({layer.filters}, 1e-3)] {
    Tensor y = Tensor::empty({plan.images, plan.out.y, plan.out.x, plan.filters}, dtype);
    block_conv2d({.plan = plan,
                  .isa = matrix_isa(type),
                  .x = x.bytes(),
                  .packed = packed.bytes(),
                  .y = y.bytes(),
                  .epilogue = {.type = type,
                               .dtype = dtype,
                               .scale = is_bf16 ? nullptr : scale.data<float>(),
                               .bias = bias.data<float>(),
                               .activation = FusedActivation::relu}});
    return y;
  };
}

void add_layer(const Layer& layer, std::int64_t images, int threads) {
  const std::int64_t out = (layer.size - 1) / layer.stride + 1, results = images * out * out * layer.filters;
  const double flops = 2.0 * static_cast<double>(results * layer.kernel * layer.kernel * layer.channels);
  const std::int64_t elements = images * layer.size * layer.size * layer.channels + results;
  const auto add = [&](const char* what, std::int64_t element_bytes, const auto& prepare) {
    add_bench(fmt::format("{} {}x{}x{}/{}/k{}s{}/threads {}/{}", layer.model, layer.size, layer.size,
                          layer.channels, layer.filters, layer.kernel, layer.stride, threads, what),
              cpu_device, {.bytes = elements * element_bytes, .flops = flops}, [=]() -> Operation {
                return [operation = prepare(), threads] {
                  const ThreadLimit limit(threads);
                  return operation();
                };
              });
  };
  add("fp32", 4, [=] { return fp32_operation(layer, images); });
  add("bf16", 2, [=] { return block_operation(layer, images, MatrixType::bf16); });
  add("int8", 1, [=] { return block_operation(layer, images, MatrixType::int8); });
}

const bool registered = [] {
  const char* const batch = std::getenv("BENCH_BATCH");
  const std::int64_t images = batch ? std::atoll(batch) : 8;
  std::vector<int> counts{1, 2};
  if (usable_cpus() > 2) counts.push_back(usable_cpus());
  for (const int threads : counts)
    for (const Layer& layer : layers) add_layer(layer, images, threads);
  return true;
}();

}  // namespace
}  // namespace tandem
