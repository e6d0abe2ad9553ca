// Augmentation in images per second: single images of 28×28 on one core, as a loader worker processes them,
// with SIMD and with scalar passes, and whole batches on every device.
#include "tandem/augment/augment.h"
#include "tandem/augment/transform.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "bench/ops/op_bench.h"
#include "tandem/augment/fused_pass_simd.h"
#include "tandem/ops/random.h"

namespace tandem {
namespace {

constexpr ImageSize digit{.height = 28, .width = 28};
constexpr int digits = 1000;
// All four operations. A fixed recipe, so that results stay comparable if the recipe `digits` changes.
constexpr const char* all_four = "rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1";

void one_core(benchmark::State& state, const Recipe& recipe, bool simd) {
  const Tensor images = random_integers({digits, digit.height, digit.width}, 0, 256, {.dtype = DType::u8});
  std::vector<std::uint8_t> out(static_cast<std::size_t>(digit.bytes()));
  AugmentScratch scratch;
  RandomKey key{.seed = 1};
  for (auto _ : state) {
    const std::uint8_t* const in = images.data<std::uint8_t>() + key.sample % digits * digit.bytes();
    if (simd) {
      augment_image(recipe, digit, key, in, out.data(), scratch);
    } else {
      detail::SampledStep steps[max_augment_steps];
      for (int i = 0; i < recipe.count; ++i)
        steps[i] = detail::sample_step(recipe.steps[i], digit,
                                       {key.seed, 0, key.sample, static_cast<std::uint32_t>(i)});
      detail::run_fused_pass({.recipe = &recipe,
                              .pass = detail::fused_pass_at(recipe, 0),
                              .steps = steps,
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
                augment_batch(Transform::parse(all_four).pixels(), 1, 0, images, samples, out);
                return out;
              };
            });
}

[[maybe_unused]] const bool registered = [] {
  for (const char* text :
       {all_four, "rotate -12 12", "shift -2 2, skew -0.15 0.15", "noise 0 0.1", "rotate -12 12 nearest",
        "rotate -12 12 cubic", "zoom 0.8 1.25", "crop 0.5 1", "flip 0.5", "blur 1 ring", "blur 1 sobel4"})
    for (const bool simd : {true, false})
      benchmark::RegisterBenchmark(fmt::format("augment_image/{}/{}", text, simd ? "fast" : "plain").c_str(),
                                   one_core, Transform::parse(text).for_one_size().pixels(), simd);
  for (const Device device : bench_devices())
    for (const std::int64_t count : {128, 60000}) add_batch(device, count);
  return true;
}();

}  // namespace
}  // namespace tandem
