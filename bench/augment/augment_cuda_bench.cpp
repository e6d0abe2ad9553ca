// Augmentation on a GPU in images per second. The common recipe on small gray images has its own kernel; the
// other cases measure the generic one. Calls are enqueued without waiting and alternate between three sets of
// images, so that reads do not hit the L2 cache. bench/compare reads the names.
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/augment/augment.h"
#include "tandem/augment/transform.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

constexpr int sets = 3, calls = 21;
// All four operations. A fixed recipe, so that results stay comparable if the recipe `digits` changes.
constexpr const char* all_four = "rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1";

struct Batch {
  Tensor images, samples, out;
};

void augment(benchmark::State& state, const Recipe& recipe, const ImageSize& size, std::int64_t count) {
  const Device device = cuda_device();
  const Shape shape{count, size.height, size.width, size.channels};
  std::vector<Batch> batches;
  for (int i = 0; i < sets; ++i)
    batches.push_back(
        {.images = random_integers(shape, 0, 256, {.seed = 1, .dtype = DType::u8, .device = device}),
         .samples = random_integers({count}, 0, count, {.seed = 2, .dtype = DType::i32, .device = device}),
         .out = Tensor::empty(shape, DType::u8, device)});
  const StreamView stream = current_stream(device);
  Event start(device), stop(device);
  const auto run = [&] {
    for (int i = 0; i < calls; ++i) {
      const Batch& batch = batches[static_cast<std::size_t>(i % sets)];
      augment_batch(recipe, 1, i, batch.images, batch.samples, batch.out);
    }
  };
  run();  // warm-up: fills the memory pool and loads the kernels
  for (auto _ : state) {
    start.record(stream);
    run();
    stop.record(stream);
    stop.synchronize();
    state.SetIterationTime(stop.elapsed_ms_since(start) / 1000);
  }
  state.SetItemsProcessed(state.iterations() * calls * count);
  state.SetBytesProcessed(state.iterations() * calls * count * 2 * size.bytes());
}

// `recipe` has the syntax of `tandem train --augment`.
void add(const char* name, const char* recipe, const ImageSize& size, std::int64_t count) {
  benchmark::RegisterBenchmark(
      fmt::format("augment/{}x{}x{}/{}/{}/cuda", size.height, size.width, size.channels, name, count).c_str(),
      [=](benchmark::State& state) { augment(state, Transform::parse(recipe).pixels(), size, count); })
      ->UseManualTime();
}

[[maybe_unused]] const bool registered = [] {
  if (cuda_device_count() == 0) return false;
  const ImageSize digit{.height = 28, .width = 28}, photo{.height = 224, .width = 224, .channels = 3};
  for (const std::int64_t count : {128, 1024, 65536}) add("digits", all_four, digit, count);
  add("rotate", "rotate -12 12", digit, 65536);
  add("moves first", "shift -2 2, rotate -12 12, noise 0 0.1", digit, 65536);
  add("moves", "shift -2 2, skew -0.15 0.15, noise 0 0.1", digit, 65536);
  add("nearest", "rotate -12 12 nearest", digit, 65536);
  add("cubic", "rotate -12 12 cubic", digit, 65536);
  add("digits", all_four, {.height = 32, .width = 32, .channels = 3}, 65536);
  add("digits", all_four, photo, 1024);
  return true;
}();

}  // namespace
}  // namespace tandem
