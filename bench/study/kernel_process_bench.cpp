// What it costs to run a kernel in another process: the functions of examples/plugins/kernels.cpp, called
// here and through a KernelProcess, in turns, with the same number of calls. $TANDEM_PROGRAM is the program
// that runs plugins (build/…/tandem).
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/random.h"
#include "tandem/plugin.h"
#include "tandem/study/plugin/kernel_process.h"
#include "tandem/tensor/tensor.h"

namespace tandem {
namespace {

struct Case {
  const char* function;
  std::int64_t rows, columns, kernel;  // kernel: side of a second input, 0: the same shape, −1: none
  int calls;
};
constexpr Case cases[] = {
    {"max", 1000, 1000, 0, 100}, {"correlation", 512, 512, 5, 4}, {"xxt", 300, 300, -1, 4}};

const PluginFile& plugin() {
  static const PluginFile compiled = prepare_plugin(TANDEM_SOURCE_DIR "/examples/plugins/kernels.cpp");
  return compiled;
}

struct Inputs {
  std::vector<Tensor> tensors;
  std::int64_t out_columns;

  explicit Inputs(const Case& c) : out_columns(c.kernel < 0 ? c.rows : c.columns) {
    tensors.push_back(uniform({c.rows, c.columns}, -1, 1, {.seed = 1}));
    if (c.kernel > 0) tensors.push_back(uniform({c.kernel, c.kernel}, -1, 1, {.seed = 2}));
    if (c.kernel == 0) tensors.push_back(uniform({c.rows, c.columns}, -1, 1, {.seed = 2}));
  }
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// The kernel as it is called in this process.
class Here {
 public:
  Here(const Case& c, const Inputs& inputs, int threads)
      : out_(Tensor::empty({c.rows, inputs.out_columns}, DType::f32)),
        result_{out_.data<float>(), c.rows, inputs.out_columns, 1, TANDEM_F32, 0},
        calls_(c.calls) {
    void* library = ::dlopen(plugin().library.c_str(), RTLD_NOW);
    kernel_ = reinterpret_cast<int (*)(const TandemCall*)>(
        ::dlsym(library, (std::string("tandem_") + c.function).c_str()));
    for (const Tensor& tensor : inputs.tensors)
      arrays_.push_back(
          {const_cast<float*>(tensor.data<float>()), tensor.size(0), tensor.size(1), 1, TANDEM_F32, 0});
    call_ = {arrays_.data(), &result_, static_cast<int>(arrays_.size()), 1, threads, 0};
  }

  double run_ms() const {
    const Stopwatch watch;
    for (int i = 0; i < calls_; ++i) kernel_(&call_);
    return watch.elapsed_ms();
  }

 private:
  Tensor out_;
  std::vector<TandemArray> arrays_;
  TandemArray result_;
  TandemCall call_{};
  int (*kernel_)(const TandemCall*) = nullptr;
  int calls_;
};

// Rounds of both, one after the other; `percent` is the median over the rounds of what the other process
// takes more. Threads that wait in loops do so for a while after a round: both sides pause before theirs.
void overhead(benchmark::State& state, KernelProcess::AfterRun after) {
  const Case& c = cases[state.range(0)];
  const int threads = static_cast<int>(state.range(1));
  const Inputs inputs(c);
  const Here here(c, inputs, threads);
  KernelFormat format{
      .function = c.function, .inputs = {}, .outputs = {{.rows = c.rows, .columns = inputs.out_columns}}};
  for (const Tensor& tensor : inputs.tensors)
    format.inputs.push_back({.rows = tensor.size(0), .columns = tensor.size(1)});
  const char* program = std::getenv("TANDEM_PROGRAM");
  KernelProcess process(plugin(), format,
                        {.program = program ? program : "build/release/tandem", .huge_pages = true});
  for (std::size_t i = 0; i < inputs.tensors.size(); ++i)
    process.set_input(0, static_cast<int>(i),
                      std::as_bytes(std::span(inputs.tensors[i].data<float>(),
                                              static_cast<std::size_t>(inputs.tensors[i].numel()))));
  const std::vector<int> sets(static_cast<std::size_t>(c.calls), 0);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  std::vector<double> here_ms, there_ms, ratios;
  for (auto _ : state) {
    constexpr int in_a_row = 3;  // the last one counts: the threads are awake
    pause();
    for (int i = 0; i < in_a_row; ++i) {
      const double ms = here.run_ms();
      if (i + 1 == in_a_row) here_ms.push_back(ms);
    }
    pause();
    for (int i = 0; i < in_a_row; ++i) {
      const double ms = process.run(sets, threads, after);
      if (i + 1 == in_a_row) there_ms.push_back(ms);
    }
    ratios.push_back(there_ms.back() / here_ms.back());
    state.SetIterationTime(there_ms.back() / 1e3);
  }
  state.counters["here_us"] = median(here_ms) * 1e3 / c.calls;
  state.counters["there_us"] = median(there_ms) * 1e3 / c.calls;
  state.counters["percent"] = (median(ratios) - 1) * 100;
  state.SetLabel(fmt::format("{}, {} calls", c.function, c.calls));
}

void all_cases(benchmark::internal::Benchmark* bench) {
  for (std::int64_t i = 0; i < std::ssize(cases); ++i)
    for (const std::int64_t threads : {1, usable_cpus()}) bench->Args({i, threads});
  bench->ArgNames({"case", "threads"})->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(31);
}

BENCHMARK_CAPTURE(overhead, waiting, KernelProcess::AfterRun::wait)->Apply(all_cases);
BENCHMARK_CAPTURE(overhead, stopped, KernelProcess::AfterRun::stop)->Apply(all_cases);

}  // namespace
}  // namespace tandem
