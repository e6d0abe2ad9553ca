// The 8-bit convolutions of ResNet-18 at 224×224 on the CPU, all but the first: as a chain, and one by one
// with a barrier of all threads after each. BENCH_BATCH is the batch size (8).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/conv/quantized_chain.h"
#include "tandem/ops/fill.h"

namespace tandem {
namespace {

struct Network {
  std::vector<detail::QuantizedConv2d> convs;
  std::vector<detail::QuantizedStep> steps;

  void add(std::int64_t channels, std::int64_t filters, std::int64_t kernel, std::int64_t stride,
           std::size_t input, std::optional<std::size_t> residual = {}) {
    const Shape shape{filters, kernel, kernel, channels};
    convs.push_back(detail::prepack_quantized_conv2d(
        {full(shape, 150, DType::u8), full({filters}, 1e-4)}, full({filters}, 0.1),
        {.window = {.stride = stride, .padding = kernel / 2}}, {.scale = 0.02f}, {.scale = 0.02f}));
    steps.push_back({nullptr, FusedActivation::relu, input, residual});
  }
};

std::shared_ptr<const Network> resnet18() {
  auto made = std::make_shared<Network>();
  Network& network = *made;
  std::int64_t channels = 64;
  for (int block = 0; block < 8; ++block) {
    const bool shrinks = block > 0 && block % 2 == 0;
    const std::int64_t filters = shrinks ? 2 * channels : channels, stride = shrinks ? 2 : 1;
    const std::size_t input = network.steps.size();
    network.add(channels, filters, 3, stride, input);
    if (shrinks) network.add(channels, filters, 1, stride, input);
    network.add(filters, filters, 3, 1, input + 1, shrinks ? input + 2 : input);
    channels = filters;
  }
  for (std::size_t i = 0; i < network.steps.size(); ++i) network.steps[i].conv = &network.convs[i];
  return made;
}

Tensor one_by_one(const Network& network, const Tensor& x) {
  const std::span<const detail::QuantizedStep> steps = network.steps;
  const std::vector<std::size_t> last = detail::last_uses(steps);
  std::vector<Tensor> values{x};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const detail::QuantizedStep& step = steps[i];
    detail::QuantizedResidual residual;
    if (step.residual) residual = {values[*step.residual], step.conv->input};
    values.push_back(detail::quantized_conv2d(*step.conv, values[step.input], step.activation, residual));
    for (std::size_t v = 0; v <= i; ++v)
      if (last[v] == i) values[v] = Tensor();
  }
  return values.back();
}

const bool registered = [] {
  const char* const batch = std::getenv("BENCH_BATCH");
  const std::int64_t images = batch ? std::atoll(batch) : 8;
  std::vector<int> counts{1, 2};
  if (usable_cpus() > 2) counts.push_back(usable_cpus());
  for (const int threads : counts)
    for (const bool is_chain : {false, true})
      add_bench(fmt::format("quantized resnet18/threads {}/{}", threads, is_chain ? "chain" : "one by one"),
                cpu_device, {.items = images}, [=]() -> Operation {
                  return [=, network = resnet18(), x = full({images, 56, 56, 64}, 40, DType::u8)] {
                    const ThreadLimit limit(threads);
                    return is_chain ? detail::quantized_conv_chain(network->steps, x)
                                    : one_by_one(*network, x);
                  };
                });
  return true;
}();

}  // namespace
}  // namespace tandem
