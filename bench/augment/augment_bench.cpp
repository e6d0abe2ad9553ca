// Augmentation in images a second: single images of 28×28 on one core, as a loader's worker makes them, by
// the fast and by the plain passes, and whole batches on every device.
#include "tandem/augment/augment.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/augment/fast_pass.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

constexpr ImageSize digit{.height = 28, .width = 28};
constexpr int digits = 1000;
// All four operations: what is compared with others does not change with the recipe `digits`.
constexpr const char* all_four = "rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1";

void one_core(benchmark::State& state, const Recipe& recipe, bool fast) {
  const Tensor images = random_integers({digits, digit.height, digit.width}, 0, 256, {.dtype = DType::u8});
  std::vector<std::uint8_t> out(static_cast<std::size_t>(digit.bytes()));
  AugmentScratch scratch;
  DrawKey key{.seed = 1};
  for (auto _ : state) {
    const std::uint8_t* const in = images.data<std::uint8_t>() + key.sample % digits * digit.bytes();
    if (fast) {
      augment_image(recipe, digit, key, in, out.data(), scratch);
    } else {
      DrawnStep drawn[most_augment_steps];
      for (int i = 0; i < recipe.count; ++i)
        drawn[i] =
            draw_step(recipe.steps[i], digit, {key.seed, 0, key.sample, static_cast<std::uint32_t>(i)});
      run_pass({.pass = pass_from(recipe, 0),
                .steps = drawn,
                .size = digit,
                .key = key,
                .in = in,
                .out = out.data()},
               scratch);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    ++key.sample;
  }
  state.SetItemsProcessed(state.iterations());
}

void add_batch(Device device, std::int64_t count) {
  add_bench(fmt::format("augment_batch/digits/{}/{}", count, name_of(device)), device,
            {.bytes = 2 * count * digit.bytes(), .items = count}, [=]() -> Operation {
              std::vector<std::int32_t> order(static_cast<std::size_t>(count));
              std::iota(order.begin(), order.end(), 0);
              const Shape shape{count, digit.height, digit.width, 1};
              const Tensor images = random_integers(shape, 0, 256, {.dtype = DType::u8, .device = device});
              const Tensor samples = Tensor::from(order, {count}, device);
              const Tensor out = Tensor::empty(shape, DType::u8, device);
              return [=] {
                augment_batch(parse_recipe(all_four), 1, 0, images, samples, out);
                return out;
              };
            });
}

[[maybe_unused]] const bool registered = [] {
  for (const char* text : {all_four, "rotate -12 12", "shift -2 2, skew -0.15 0.15", "noise 0 0.1",
                           "rotate -12 12 nearest", "rotate -12 12 cubic"})
    for (const bool fast : {true, false})
      benchmark::RegisterBenchmark(fmt::format("augment_image/{}/{}", text, fast ? "fast" : "plain").c_str(),
                                   one_core, parse_recipe(text), fast);
  for (const Device device : bench_devices())
    for (const std::int64_t count : {128, 60000}) add_batch(device, count);
  return true;
}();

}  // namespace
}  // namespace tandem
