// Images per second through the loader, 28×28 in batches of 128, for several numbers and kinds of workers:
// with all four operations, and with an empty recipe, which measures the pipeline itself.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "bench/data/block_reader.h"
#include "tandem/augment/transform.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/worker.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

// Fixed, so that comparisons with other libraries do not change with the recipe `digits`.
constexpr const char* all_four = "rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1";

const ImageSet& training_images() {
  static const ImageSet set = [] {
    constexpr std::int64_t samples = 60000;
    ImageSet made;
    made.images = random_integers({samples, 28, 28, 1}, 0, 256, {.seed = 1, .dtype = DType::u8});
    made.labels = random_integers({samples}, 0, 10, {.seed = 2, .dtype = DType::i32});
    made.classes.resize(10);
    return made;
  }();
  return set;
}

void load(benchmark::State& state, WorkerKind kind, int workers, const Recipe& recipe) {
  const BatchPlan plan{.samples = training_images().count(), .batch_size = 128};
  Loader loader(detail::sample_store(training_images()), plan, recipe, {.workers = workers, .kind = kind});
  BlockReader reader(loader, plan);
  for (int i = 0; i < 4 * loader.slots(); ++i) reader.next();  // until every worker is running
  const double waited_before = loader.statistics().waited_ms;
  std::int64_t images = 0;
  for (auto _ : state) images += reader.next();
  state.SetItemsProcessed(images);
  state.counters["waited_ms"] = loader.statistics().waited_ms - waited_before;
}

void register_all() {
  std::vector<int> counts;
  for (int count = 1; count < usable_cpus(); count *= 2) counts.push_back(count);
  counts.push_back(std::max(2, usable_cpus()));
  const auto add = [](const std::string& name, const Recipe& recipe, WorkerKind kind, int workers) {
    benchmark::RegisterBenchmark(("load/" + name).c_str(), [=](benchmark::State& state) {
      load(state, kind, workers, recipe);
    })->UseRealTime();
  };
  for (const bool plain : {false, true}) {
    const Recipe recipe = plain ? Recipe{} : Transform::parse(all_four).pixels();
    const std::string name = plain ? "none" : "digits";
    add(name + "/here", recipe, WorkerKind::thread, 0);
    for (const int count : counts) {
      add(fmt::format("{}/threads:{}", name, count), recipe, WorkerKind::thread, count);
      add(fmt::format("{}/processes:{}", name, count), recipe, WorkerKind::process, count);
    }
  }
}

}  // namespace
}  // namespace tandem

// A main() of its own, because process workers execute this program too.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return tandem::run_worker({argv + 1, argv + argc});
  benchmark::Initialize(&argc, argv);
  tandem::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
