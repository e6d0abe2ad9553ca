// A check of 2,000 photographs of 500 x 500 (4:2:0, quality 90), read from files: images per second with as
// many threads as the argument says. Then the search for near hashes, of as many as the argument says.
#include "tandem/study/check/check_data.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "tandem/core/parallel.h"
#include "tandem/data/synthetic/plates.h"
#include "tandem/study/check/hash_index.h"
#include "tandem/study/check/survey.h"
#include "tests/image/jpeg_writer.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

constexpr std::int64_t images = 2000, different = 200;

// The same 200 plates again and again, each file with other bytes after its end: nothing is an exact copy.
const TempFolder& photographs() {
  static const TempFolder folder;
  if (!std::filesystem::exists(folder / "data")) {
    std::filesystem::create_directories(folder / "data/a");
    for (std::int64_t i = 0; i < different; ++i) {
      const std::vector<std::uint8_t> jpeg =
          write_jpeg(render_plate(1, static_cast<std::uint64_t>(i), i % 2 == 0, 500), {});
      for (std::int64_t k = i; k < images; k += different)
        put_bytes(folder / fmt::format("data/a/{:05}.jpg", k),
                  std::string(jpeg.begin(), jpeg.end()) + std::to_string(k));
    }
  }
  return folder;
}

void survey(benchmark::State& state) {
  const CheckedFiles files = find_checked_files(photographs() / "data");
  const ThreadLimit limit(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(survey_images(files, 179'000'000));
  state.SetItemsProcessed(state.iterations() * images);
}

// With the comparison of pictures: every file has nine near copies.
void check_all(benchmark::State& state) {
  const ThreadLimit limit(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(check_data({.data = photographs() / "data"}));
  state.SetItemsProcessed(state.iterations() * images);
}

void near_hashes(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::vector<PictureHash> hashes(static_cast<std::size_t>(state.range(0)));
  for (PictureHash& hash : hashes)
    for (std::uint64_t& word : hash.words) word = random() & random();
  const ThreadLimit limit(1);
  for (auto _ : state) {
    const HashIndex index(hashes);
    std::vector<std::uint32_t> found;
    for (const PictureHash& hash : hashes) index.find(hash, 64, found);
    benchmark::DoNotOptimize(found);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(survey)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(check_all)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(near_hashes)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
