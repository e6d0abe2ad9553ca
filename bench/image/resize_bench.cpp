// Resizes photographs to a network's input size on one thread. Pillow needs 4.7 ms for the first case on a
// Neoverse V1.
#include "tandem/image/resize_kernel.h"

#include <benchmark/benchmark.h>

#include "tandem/image/example_photo.h"

namespace tandem {
namespace {

void resize_photo(benchmark::State& state, ResizeFilter filter) {
  const Image photo = example_photo(state.range(0), state.range(1));
  const int64_t side = state.range(2);
  Image out = make_image(side, side, 3);
  detail::ResizeScratch scratch;
  for (auto _ : state) {
    scratch.columns.in = scratch.rows.in = 0;  // no reuse: every random crop has another size
    detail::resize_into(photo, side, side, out.pixels.data(), filter, scratch);
    benchmark::DoNotOptimize(out.pixels.data());
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Args({1000, 1600, 224})->Args({500, 500, 224})->Args({300, 300, 224})->Args({150, 200, 224});
  bench->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(resize_photo, bilinear, ResizeFilter::bilinear)->Apply(sizes);
BENCHMARK_CAPTURE(resize_photo, bicubic, ResizeFilter::bicubic)->Apply(sizes);

}  // namespace
}  // namespace tandem
