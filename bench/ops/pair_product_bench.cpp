// The kernels for pairs of rows alone, on CPUs with bfmmla and usmmla (aarch64), with both schedules of their
// loads: three pairs of rows and one panel for 24 steps, which stay in the L1 cache, and a pair of panels as
// 3×3 convolutions of 64 to 512 channels have them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "tandem/ops/pair_product.h"

namespace tandem::detail {
namespace {

void multiply(benchmark::State& state, PairKernel kernel, std::int64_t steps, std::int64_t tiles,
              std::int64_t panels) {
  const std::int64_t row_bytes = 2 * steps * step_bytes;
  const std::vector<std::byte> rows(static_cast<std::size_t>(block_pairs * row_bytes)),
      packed(static_cast<std::size_t>(panels * steps * panel_step_bytes));
  std::vector<std::int64_t> pairs;
  std::vector<std::int64_t> offsets;
  for (std::int64_t p = 0; p < block_pairs; ++p) pairs.push_back(p * row_bytes);
  for (std::int64_t s = 0; s < steps; ++s) offsets.push_back(s * step_bytes);
  std::vector<float> sums(2 * block_pairs * block_columns);
  for (auto _ : state) {
    kernel({.rows = rows.data(),
            .pairs = pairs.data(),
            .offsets = offsets.data(),
            .steps = steps,
            .panels = packed.data(),
            .used_tiles = static_cast<int>(tiles),
            .panel_count = static_cast<int>(panels),
            .sums = sums.data()});
    benchmark::DoNotOptimize(sums.data());
  }
}

const bool registered = [] {
  for (const MatrixType type : {MatrixType::bf16, MatrixType::int8})
    for (const MatrixIsa isa : available_matrix_isas(type))
      for (const LoadSchedule schedule : {LoadSchedule::adjacent, LoadSchedule::early})
        for (const std::int64_t channels : {0, 64, 128, 256, 512}) {
          const PairKernel kernel = pair_kernel(type, isa, schedule);
          if (!kernel) continue;
          const std::int64_t tiles = channels ? 4 : 1, panels = channels ? 2 : 1;
          const std::int64_t steps = channels ? 9 * channels / step_elements(type) : 24;
          const auto products = static_cast<double>(2 * tiles * tile_pairs * panels * panel_width * steps *
                                                    step_elements(type));
          const std::string name =
              fmt::format("pair_product/{}/{}/{}", type == MatrixType::bf16 ? "bf16" : "int8",
                          schedule == LoadSchedule::early ? "early" : "adjacent",
                          channels ? fmt::format("{} channels", channels) : std::string("L1"));
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            multiply(state, kernel, steps, tiles, panels);
            state.counters["FLOP/s"] =
                benchmark::Counter(2 * products, benchmark::Counter::kIsIterationInvariantRate);
          });
        }
  return true;
}();

}  // namespace
}  // namespace tandem::detail
