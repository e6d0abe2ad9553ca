// Views of rendered scenes per second, 112×112, 1,024 scenes with two views each (64 on the CPU); and each
// kind of scene by itself on a GPU.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "tandem/data/synthetic/scenes.h"
#include "tandem/device/stream.h"

namespace tandem {
namespace {

void render(benchmark::State& state, Device device, const std::vector<double>& kinds) {
  const std::int64_t scenes = device.is_cuda() ? 1024 : 64;
  SceneRenderer renderer(scenes, {.seed = 1, .views = 2, .kinds = kinds}, device);
  std::int64_t first = 0;
  const auto batch = [&] {
    renderer.render(first);
    first += scenes;
    current_stream(device).synchronize();
  };
  batch();
  for (auto _ : state) batch();
  state.SetItemsProcessed(state.iterations() * renderer.pictures());
}

const bool registered = [] {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  for (const Device device : devices) {
    benchmark::RegisterBenchmark(fmt::format("scenes/{}", device.to_string()).c_str(),
                                 [device](benchmark::State& state) { render(state, device, {}); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    for (std::size_t kind = 0; kind < scene_kinds().size() && device.is_cuda(); ++kind) {
      std::vector<double> only(scene_kinds().size());
      only[kind] = 1;
      benchmark::RegisterBenchmark(
          fmt::format("scenes {}/{}", scene_kinds()[kind], device.to_string()).c_str(),
          [device, only](benchmark::State& state) { render(state, device, only); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace tandem
