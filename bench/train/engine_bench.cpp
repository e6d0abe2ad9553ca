// Steps of training, as samples a second: the perceptron of SPEC §4 and a large one, on every device.
#include <benchmark/benchmark.h>

#include <string>

#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/train/engine.h"
#include "tandem/train/module_engine.h"

namespace tandem {
namespace {

enum class Kind { best, general };

void train(benchmark::State& state, std::vector<std::int64_t> layers, Device device, Kind kind) {
  const std::int64_t samples = 60000, batch = state.range(0);
  ImageSet images;
  images.images =
      random_integers({samples, 28, 28, 1}, 0, 256, {.seed = 1, .dtype = DType::u8, .device = device});
  images.labels = random_integers({samples}, 0, 10, {.seed = 2, .dtype = DType::i32, .device = device});
  images.classes.resize(10);
  const auto model = make_mlp({.layers = std::move(layers)});
  model->to(device);
  Optimizer optimizer(model->parameters(), {}, 0.1);
  const TrainingTask task{.model = *model,
                          .optimizer = optimizer,
                          .images = images,
                          .batches = {.samples = samples, .batch_size = batch}};
  const auto engine = kind == Kind::best ? make_engine(task) : std::make_unique<ModuleEngine>(task);
  const std::int64_t steps =
      std::min<std::int64_t>(task.batches.steps(), std::max<std::int64_t>(4, 16384 / batch));
  engine->run(0, 0, steps);
  std::int64_t done = 0;
  for (auto _ : state) done += engine->run(1, 0, steps).samples;
  state.SetItemsProcessed(done);
  state.SetLabel(engine->description());
}

void register_all() {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices)
    for (const auto& [name, kind] : {std::pair{"best", Kind::best}, {"general", Kind::general}}) {
      const auto add = [&, kind = kind](const std::string& shape, const std::vector<std::int64_t>& layers) {
        return benchmark::RegisterBenchmark(
                   ("train/" + shape + "/" + device.to_string() + "/" + name).c_str(),
                   [layers, device, kind](benchmark::State& state) { train(state, layers, device, kind); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      };
      add("784,200,10", {784, 200, 10})->Arg(16)->Arg(128)->Arg(1024);
      add("784,4096,4096,10", {784, 4096, 4096, 10})->Arg(128)->Arg(1024);
    }
}

const bool registered = (register_all(), true);

}  // namespace
}  // namespace tandem
