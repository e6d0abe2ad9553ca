#include "tandem/study/plugin/plugin_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/study/plugin/kernel_process.h"
#include "tandem/study/plugin/peers.h"

namespace tandem {
namespace {

using StudyTypes = TypeList<float, double, std::uint8_t, std::int32_t, std::int64_t>;

ArrayFormat format_of(const Tensor& tensor) {
  check(tensor.shape().rank() == 2, "[plugin] expected a matrix, got shape {}", tensor.shape().to_string());
  return {.dtype = tensor.dtype(), .rows = tensor.size(0), .columns = tensor.size(1)};
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return on_dtype(StudyTypes{}, tensor.dtype(), "plugin", [&]<class T>() {
    return std::as_bytes(std::span<const T>(tensor.data<T>(), static_cast<std::size_t>(tensor.numel())));
  });
}

Tensor to_tensor(const std::vector<std::byte>& bytes, const Tensor& like) {
  Tensor tensor = Tensor::empty(like.shape(), like.dtype());
  on_dtype(StudyTypes{}, tensor.dtype(), "plugin",
           [&]<class T>() { std::memcpy(tensor.data<T>(), bytes.data(), bytes.size()); });
  return tensor;
}

// A request lasts at least this long, by several calls if need be: waking the other process and its threads
// is part of the measured time, and takes milliseconds when the CPUs are busy.
constexpr double min_request_ms = 20;
constexpr int max_calls_per_request = 2000;

class PluginMeasurement {
 public:
  PluginMeasurement(const PluginVersion& plugin, const PluginCase& plugin_case, int threads)
      : case_(plugin_case),
        sets_(uses_gpu(plugin) ? rotated_sets(plugin_case.bytes) : 1),
        threads_(threads),
        process_(plugin.file, format(), options_for(plugin)) {
    set_inputs();
  }

  bool is_cuda() const { return process_.is_cuda(); }

  // Computes once; the error of the result.
  double check_result() {
    poison();
    run(1);
    return error_of_output(0);
  }

  // Between the repetitions the process is not stopped and its outputs are not touched, so that its threads
  // keep their CPUs and its arrays stay in the caches, as those of our own versions do. The result is
  // compared again at the end.
  Timing measure_calls(const MeasureOptions& options) {
    const int calls = choose_calls();
    const int count = repetitions_for(options, run(calls, KernelProcess::AfterRun::wait));
    std::vector<double> times;
    for (int i = 0; i < count; ++i) times.push_back(run(calls, KernelProcess::AfterRun::wait) / calls);
    poison();
    run(sets_);
    for (int set = 0; set < sets_; ++set)
      if (!(error_of_output(set) <= case_.tolerance))
        throw PluginFailure("gave another, wrong result when it was repeated");
    return timing_of(std::move(times));
  }

  Timing measure_with_copies(const MeasureOptions& options) {
    return measure_wall(
        cpu_device,
        [&](int) {
          for (std::size_t i = 0; i < case_.inputs.size(); ++i)
            process_.set_input(0, static_cast<int>(i), bytes_of(case_.inputs[i]));
          run(1);
        },
        options);
  }

 private:
  static bool uses_gpu(const PluginVersion& plugin) {
    return plugin.device.is_cuda() || plugin.file.source.extension() == ".cu";
  }

  KernelProcessOptions options_for(const PluginVersion& plugin) const {
    KernelProcessOptions options{
        .program = plugin.program, .sandbox = {.allow_processes = true}, .huge_pages = true};
    if (case_.tf32) options.environment.emplace_back("TANDEM_PRECISION=tf32");
    return options;
  }

  KernelFormat format() const {
    KernelFormat format{
        .function = case_.function, .inputs = {}, .outputs = {format_of(case_.result)}, .sets = sets_};
    for (const Tensor& input : case_.inputs) format.inputs.push_back(format_of(input));
    return format;
  }

  void set_inputs() {
    for (int set = 0; set < sets_; ++set)
      for (std::size_t i = 0; i < case_.inputs.size(); ++i)
        process_.set_input(set, static_cast<int>(i), bytes_of(case_.inputs[i]));
  }

  void poison() {
    for (int set = 0; set < sets_; ++set) process_.poison_outputs(set);
  }

  // The number of calls of a request. It grows step by step: on a busy machine a call whose threads wait for
  // each other can take a thousand times as long as it would alone, and thousands of them longer than
  // allowed.
  int choose_calls() {
    run(1, KernelProcess::AfterRun::wait);  // wakes the threads
    int calls = 1;
    while (calls < max_calls_per_request) {
      const double request_ms = run(calls, KernelProcess::AfterRun::wait);
      if (request_ms >= min_request_ms) break;
      const double wanted = std::ceil(calls * min_request_ms / std::max(request_ms, 1e-6));
      calls = static_cast<int>(std::clamp(wanted, calls + 1.0, 4.0 * calls));
      calls = std::min(calls, max_calls_per_request);
    }
    return calls;
  }

  double run(int calls, KernelProcess::AfterRun after = KernelProcess::AfterRun::stop) {
    std::vector<int> sets(static_cast<std::size_t>(calls));
    for (int i = 0; i < calls; ++i) sets[static_cast<std::size_t>(i)] = i % sets_;
    return process_.run(sets, threads_, after);
  }

  double error_of_output(int set) {
    process_.check_memory(set);
    std::vector<std::byte> bytes = process_.output(set, 0);
    if (bytes == correct_) return 0;
    const double error = case_.error_of(to_tensor(bytes, case_.result));
    if (error <= case_.tolerance) correct_ = std::move(bytes);
    return error;
  }

  const PluginCase& case_;
  int sets_;
  int threads_;
  KernelProcess process_;
  std::vector<std::byte> correct_;  // the last result that was compared and is correct
};

}  // namespace

std::vector<PluginVersion> plugin_versions(const StudyOptions& options) {
  std::vector<PluginVersion> versions;
  for (const PluginFile& plugin : options.plugins) versions.push_back({.file = plugin, .device = cpu_device});
  for (PluginVersion& peer : installed_peers(options.peers)) versions.push_back(std::move(peer));
  for (PluginVersion& version : versions) version.program = options.program;
  return versions;
}

std::vector<Fact> plugin_legend(const StudyOptions& options) {
  std::vector<Fact> legend;
  for (const PluginFile& plugin : options.plugins)
    legend.push_back({plugin.name, plugin.command.empty()
                                       ? fmt::format("your {}", plugin.source.string())
                                       : fmt::format("your {}, compiled with: {}", plugin.source.string(),
                                                     plugin.command)});
  for (Fact& fact : peer_legend(options.peers)) legend.push_back(std::move(fact));
  return legend;
}

PluginResult measure_plugin(StudyRow& row, const PluginVersion& plugin, const PluginCase& plugin_case,
                            const MeasureOptions& options) {
  set_times(row, not_timed);
  row.agrees = false;
  bool has_result = false;
  try {
    PluginMeasurement measurement(plugin, plugin_case, row.threads.value_or(usable_cpus()));
    if (measurement.is_cuda()) row.device = Device{Backend::cuda, 0}.to_string();
    row.figures["max_error"] = measurement.check_result();
    has_result = true;
    row.agrees = row.value("max_error") <= plugin_case.tolerance;
    if (!row.agrees) return PluginResult::measured;
    const Timing timing = measurement.measure_calls(options);
    if (measurement.is_cuda())
      row.figures["with_copies_ms"] = measurement.measure_with_copies(options).median_ms;
    set_times(row, timing);
    return PluginResult::measured;
  } catch (const UnsupportedCase& failure) {
    row.failure = failure.what();
    if (plugin.is_peer) return PluginResult::unsupported;
  } catch (const PluginFailure& failure) {
    row.failure = failure.what();
    if (plugin.is_peer && !has_result) return PluginResult::unusable;
  }
  row.agrees = false;
  return PluginResult::measured;
}

}  // namespace tandem
