// Matrix products of sizes that occur in training, with one thread and with all, in FLOP/s.
#include <benchmark/benchmark.h>

#include <array>

#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/matmul.h"

namespace tandem {
namespace {

// Arguments: m, k, n, threads (0: all).
void matmul_bench(benchmark::State& state, DType dtype) {
  const Tensor a = full({state.range(0), state.range(1)}, 0.5, dtype);
  const Tensor b = full({state.range(1), state.range(2)}, 0.25, dtype);
  const ThreadLimit limit(state.range(3) > 0 ? static_cast<int>(state.range(3)) : thread_count());
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b).bytes());
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * static_cast<double>(state.range(0) * state.range(1) * state.range(2)),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"m", "k", "n", "threads"})->UseRealTime();
  for (const int threads : {1, 0})
    for (const auto& [m, k, n] : {std::array{1024, 1024, 1024},
                                  {16, 784, 200},
                                  {128, 784, 200},
                                  {16, 200, 10},
                                  {784, 16, 200},
                                  {4096, 27, 64}})
      bench->Args({m, k, n, threads});
}

BENCHMARK_CAPTURE(matmul_bench, f32, DType::f32)->Apply(sizes);
BENCHMARK_CAPTURE(matmul_bench, bf16, DType::bf16)->Apply(sizes);

}  // namespace
}  // namespace tandem
