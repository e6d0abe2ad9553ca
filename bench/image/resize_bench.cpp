// Resizing photographs to a network's input, on one thread. Pillow needs 4.7 ms for the first case on a
// Neoverse V1.
#include "tandem/image/resize.h"

#include <benchmark/benchmark.h>

#include "tandem/image/test_photo.h"

namespace tandem {
namespace {

void resize_photo(benchmark::State& state, ResizeFilter filter) {
  const Image photo = draw_test_photo(state.range(0), state.range(1));
  const int64_t side = state.range(2);
  Image out = make_image(side, side, 3);
  ResizeScratch scratch;
  for (auto _ : state) {
    scratch.columns.in = scratch.rows.in = 0;  // every random crop has another size
    resize(photo, side, side, out.pixels.data(), filter, scratch);
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
