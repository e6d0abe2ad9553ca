// Decodes a photograph of 500 x 500 (4:2:0, quality 90) on one thread: completely, half of its area, and
// scaled.
#include "tandem/image/decode.h"

#include <benchmark/benchmark.h>

#include "tandem/image/example_photo.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

void whole(benchmark::State& state) {
  const std::vector<uint8_t> jpeg = write_jpeg(example_photo(500, 500), {});
  state.counters["bytes"] = double(jpeg.size());
  for (auto _ : state) benchmark::DoNotOptimize(decode_image(jpeg, "photo"));
}

void box(benchmark::State& state, int64_t min_side) {
  const std::vector<uint8_t> jpeg = write_jpeg(example_photo(500, 500), {});
  const PixelBox half{.x = 73, .y = 73, .width = 354, .height = 354};
  for (auto _ : state) benchmark::DoNotOptimize(decode_scaled(jpeg, "photo", half, min_side, min_side));
}

void header(benchmark::State& state) {
  const std::vector<uint8_t> jpeg = write_jpeg(example_photo(500, 500), {});
  for (auto _ : state) benchmark::DoNotOptimize(read_image_info(jpeg, "photo"));
}

BENCHMARK(whole)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(box, half_the_area, 0)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(box, half_the_area_at_a_half, 177)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(box, half_the_area_at_an_eighth, 32)->Unit(benchmark::kMicrosecond);
BENCHMARK(header)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem
