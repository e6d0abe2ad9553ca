// Training throughput in samples per second: whole epochs of the perceptron of SPEC §4 and of a large one (on
// the CPU a part of an epoch), on every device; the large one on a GPU also with lower precision than fp32.
// bench/compare reads the names.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/engines/module_engine.h"

namespace tandem {
namespace {

// The engine that make_engine() chooses or ModuleEngine, and the precision of products.
struct Variant {
  const char* name;
  bool best = true;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

constexpr Variant all_devices[] = {{.name = "best"}, {.name = "general", .best = false}};
constexpr Variant gpu_only[] = {{.name = "tf32", .precision = MatmulPrecision::tf32},
                                {.name = "bf16", .precision = MatmulPrecision::bf16}};

struct Network {
  std::vector<std::int64_t> layers;
  std::int64_t cpu_steps;  // maximum number of steps per epoch on the CPU
  std::int64_t
      warm_up;  // minimum number of steps: the CPU engine tunes its thread count in the first few hundred
};

const Network small{.layers = {784, 200, 10}, .cpu_steps = 1 << 20, .warm_up = 500};
const Network large{.layers = {784, 4096, 4096, 10}, .cpu_steps = 16, .warm_up = 1};

std::string name_of(const Network& network, Device device, const Variant& variant) {
  return fmt::format("train/{}/{}/{}", fmt::join(network.layers, ","), device.to_string(), variant.name);
}

void train(benchmark::State& state, const Network& network, Device device, const Variant& variant) {
  const std::int64_t samples = 60000, batch = state.range(0);
  ImageSet images;
  images.images =
      random_integers({samples, 28, 28, 1}, 0, 256, {.seed = 1, .dtype = DType::u8, .device = device});
  images.labels = random_integers({samples}, 0, 10, {.seed = 2, .dtype = DType::i32, .device = device});
  images.classes.resize(10);
  const auto model = make_mlp({.layers = network.layers});
  model->to(device);
  FusedOptimizer optimizer(model->parameters(), {}, 0.1);
  InMemorySource source(images, {.samples = samples, .batch_size = batch});
  const TrainingTask task{
      .model = *model, .optimizer = optimizer, .source = source, .precision = variant.precision};
  const auto engine = variant.best ? make_engine(task) : std::make_unique<ModuleEngine>(task);
  const std::int64_t epoch = task.batches().steps();
  const std::int64_t steps = device.is_cuda() ? epoch : std::min(epoch, network.cpu_steps);
  for (std::int64_t done = 0; done < network.warm_up; done += steps) engine->run(0, 0, steps);
  std::int64_t done = 0;
  for (auto _ : state) done += engine->run(1, 0, steps).samples;
  state.SetItemsProcessed(done);
  state.SetLabel(engine->description());
}

void add(const Network& network, Device device, const Variant& variant,
         const std::vector<std::int64_t>& batches) {
  auto* const added = benchmark::RegisterBenchmark(
      name_of(network, device, variant).c_str(),
      [&network, device, variant](benchmark::State& state) { train(state, network, device, variant); });
  added->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const std::int64_t batch : batches) added->Arg(batch);
}

void register_all() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices)
    for (const Variant& variant : all_devices) {
      add(small, device, variant, {16, 128, 1024});
      add(large, device, variant, {128, 1024});
    }
  if (devices.back().is_cuda())
    for (const Variant& variant : gpu_only) add(large, devices.back(), variant, {1024});
}

const bool registered = (register_all(), true);

}  // namespace
}  // namespace tandem
