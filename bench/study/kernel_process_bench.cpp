// What it costs to run a kernel in another process: the functions of examples/plugins/kernels.cpp, called
// here and through a KernelProcess. Both make the same number of calls per sample; the time of a call is
// shown. $TANDEM_PROGRAM is the program that runs plugins (build/…/tandem).
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
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
    {"max", 1000, 1000, 0, 50}, {"correlation", 1024, 1024, 5, 10}, {"xxt", 500, 500, -1, 10}};

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

void in_process(benchmark::State& state) {
  const Case& c = cases[state.range(0)];
  void* library = ::dlopen(plugin().library.c_str(), RTLD_NOW);
  const auto kernel = reinterpret_cast<int (*)(const TandemCall*)>(
      ::dlsym(library, (std::string("tandem_") + c.function).c_str()));
  const Inputs inputs(c);
  Tensor out = Tensor::empty({c.rows, inputs.out_columns}, DType::f32);
  std::vector<TandemArray> arrays;
  for (const Tensor& tensor : inputs.tensors)
    arrays.push_back(
        {const_cast<float*>(tensor.data<float>()), tensor.size(0), tensor.size(1), 1, TANDEM_F32, 0});
  TandemArray result{out.data<float>(), c.rows, inputs.out_columns, 1, TANDEM_F32, 0};
  const TandemCall call{
      arrays.data(), &result, static_cast<int>(arrays.size()), 1, static_cast<int>(state.range(1)), 0};
  for (auto _ : state) {
    const Stopwatch watch;
    for (int i = 0; i < c.calls; ++i) kernel(&call);
    state.SetIterationTime(watch.elapsed_ms() / 1e3);
  }
  state.SetLabel(fmt::format("{}, {} calls", c.function, c.calls));
}

void in_another_process(benchmark::State& state, KernelProcess::AfterRun after) {
  const Case& c = cases[state.range(0)];
  const Inputs inputs(c);
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
  for (auto _ : state)
    state.SetIterationTime(process.run(sets, static_cast<int>(state.range(1)), after) / 1e3);
  state.SetLabel(fmt::format("{}, {} calls", c.function, c.calls));
}

void all_cases(benchmark::internal::Benchmark* bench) {
  for (std::int64_t i = 0; i < std::ssize(cases); ++i)
    for (const std::int64_t threads : {1, usable_cpus()}) bench->Args({i, threads});
  bench->ArgNames({"case", "threads"})->UseManualTime()->Unit(benchmark::kMicrosecond)->MinTime(0.2);
}

BENCHMARK(in_process)->Apply(all_cases);
BENCHMARK_CAPTURE(in_another_process, stopped, KernelProcess::AfterRun::stop)->Apply(all_cases);
BENCHMARK_CAPTURE(in_another_process, waiting, KernelProcess::AfterRun::wait)->Apply(all_cases);

}  // namespace
}  // namespace tandem
