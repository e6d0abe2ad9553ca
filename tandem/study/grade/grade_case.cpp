#include "tandem/study/grade/grade_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/core/clock.h"
#include "tandem/device/stream.h"
#include "tandem/study/grade/array_difference.h"
#include "tandem/study/measure.h"

namespace tandem {
namespace {

constexpr int checked_repetitions = 4;
// Calls between two looks at the clock, at most. A request to the process costs some 0.1 ms, which is more
// than many calls on a GPU take.
constexpr int timed_sets = 4, timed_sets_on_gpu = 32;
constexpr int min_rounds = 12, max_rounds = 2000;

class CaseRunner {
 public:
  CaseRunner(const PluginFile& plugin, const TaskCase& task_case, int sets, const CaseSettings& settings,
             HiddenSeeds& seeds)
      : task_case_(task_case),
        settings_(settings),
        seeds_(seeds),
        inputs_(static_cast<std::size_t>(sets)),
        process_(plugin, with_sets(task_case.format, sets), settings.process) {}

  // Runs the function on fresh inputs in the first `count` sets. Returns the milliseconds.
  double run(int count) {
    std::vector<int> sets(static_cast<std::size_t>(count));
    std::iota(sets.begin(), sets.end(), 0);
    return process_.run(sets, settings_.threads);
  }

  void prepare(int count) {
    for (int set = 0; set < count; ++set) {
      std::vector<Tensor>& inputs = inputs_[static_cast<std::size_t>(set)];
      inputs = task_case_.inputs(seeds_.next());
      for (std::size_t i = 0; i < inputs.size(); ++i)
        process_.set_input(set, static_cast<int>(i), bytes_of(inputs[i]));
      process_.poison_outputs(set);
    }
  }

  // Every set has an output of its own, as the submission's have: one that stays in the cache would be an
  // advantage.
  double run_reference(std::size_t count) {
    results_.resize(count);
    const Version version = is_cuda() ? settings_.cuda_reference : settings_.reference;
    const Stopwatch watch;
    for (std::size_t set = 0; set < count; ++set)
      results_[set] = task_case_.reference(reference_inputs_[set], version);
    if (is_cuda()) current_stream(results_[0].device()).synchronize();
    return watch.elapsed_ms();
  }

  // Puts the inputs where the reference reads them.
  void prepare_reference() {
    reference_inputs_ = inputs_;
    if (!is_cuda()) return;
    for (std::vector<Tensor>& inputs : reference_inputs_)
      for (Tensor& input : inputs) input = input.to(Device{Backend::cuda, 0});
  }

  bool is_cuda() const { return process_.is_cuda(); }

  // Whether all results are right; else sets the problem and its pictures.
  bool check(int count, CaseRun& result) {
    for (int set = 0; set < count; ++set) {
      process_.check_memory(set);
      if (!check_set(set, result)) return false;
    }
    return true;
  }

 private:
  static KernelFormat with_sets(KernelFormat format, int sets) {
    format.sets = sets;
    return format;
  }

  static std::span<const std::byte> bytes_of(const Tensor& tensor) {
    return {tensor.bytes(), static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype())};
  }

  std::vector<Tensor> outputs_of(int set) {
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < task_case_.format.outputs.size(); ++i) {
      const ArrayFormat& format = task_case_.format.outputs[i];
      outputs.push_back(Tensor::empty({format.rows, format.columns}, format.dtype));
      std::ranges::copy(process_.output(set, static_cast<int>(i)), outputs.back().bytes());
    }
    return outputs;
  }

  bool check_set(int set, CaseRun& result) {
    const std::vector<Tensor>& inputs = inputs_[static_cast<std::size_t>(set)];
    const std::vector<Tensor> outputs = outputs_of(set);
    if (task_case_.check) {
      result.problem = task_case_.check(inputs, outputs);
      return result.problem.empty();
    }
    const std::vector<Tensor> expected = task_case_.expected(inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto difference = difference_of(expected[i], outputs[i], task_case_.tolerance);
      if (!difference) continue;
      const std::string where = expected.size() > 1 ? fmt::format("output {}: ", i + 1) : "";
      result.problem = where + difference->sentence;
      result.pictures = std::move(difference->pictures);
      return false;
    }
    return true;
  }

  const TaskCase& task_case_;
  const CaseSettings& settings_;
  HiddenSeeds& seeds_;
  std::vector<std::vector<Tensor>> inputs_;  // of every set
  std::vector<std::vector<Tensor>> reference_inputs_;
  std::vector<Tensor> results_;  // of the reference
  KernelProcess process_;
};

// Whether more rounds would change little.
bool is_settled(const SpeedSample& sample, double max_spread) {
  return spread_of(sample.reference_ms) <= max_spread / 3 && spread_of(sample.student_ms) <= max_spread / 3;
}

class Measurement {
 public:
  Measurement(CaseRunner& runner, const CaseSettings& settings)
      : runner_(runner), settings_(settings), calls_(runner.is_cuda() ? timed_sets_on_gpu : timed_sets) {}

  // Sets the speed, or the problem of a wrong result.
  void run(CaseRun& result) {
    const ThreadCountScope threads(settings_.threads);
    for (int round = 0; round < max_rounds; ++round) {
      runner_.prepare(calls_);
      runner_.prepare_reference();
      if (round == 0) runner_.run_reference(static_cast<std::size_t>(calls_));  // warm up
      if (round % 2 == 0) time_reference();
      const double student_ms = runner_.run(calls_);
      if (round % 2 == 1) time_reference();
      result.failed_while_timed = !runner_.check(calls_, result);
      if (result.failed_while_timed) return;
      sample_.student_ms.push_back(student_ms / calls_);
      spent_ms_ += student_ms;
      adapt();
      if (is_done(round + 1)) break;
    }
    result.speed = speed_of(sample_);
  }

 private:
  void time_reference() {
    for (int i = 0; i < reference_runs_; ++i) {
      const double ms = runner_.run_reference(static_cast<std::size_t>(calls_));
      sample_.reference_ms.push_back(ms / calls_);
      spent_ms_ += ms;
    }
  }

  // Short measurements are the ones that nothing interrupts: a slow submission gets one call per look at the
  // clock, and leaves time for more runs of the reference, whose minimum is then steadier.
  void adapt() {
    constexpr double long_call_ms = 1;
    const double student_ms = sample_.student_ms.back();
    if (student_ms > long_call_ms) calls_ = 1;
    constexpr double max_runs = 6;
    const double least = runner_.is_cuda() ? max_runs : 1;  // starting kernels is short and uneven
    reference_runs_ = static_cast<int>(std::clamp(student_ms / sample_.reference_ms.back(), least, max_runs));
  }

  bool is_done(int rounds) const {
    const double elapsed_ms = watch_.elapsed_ms();
    if (elapsed_ms > settings_.time_left_s * 1e3) return true;
    const auto is_over = [&](double ms) { return spent_ms_ >= ms || elapsed_ms >= 2 * ms; };
    return rounds >= min_rounds && is_over(settings_.measured_ms) &&
           (is_settled(sample_, settings_.max_spread) || is_over(3 * settings_.measured_ms));
  }

  CaseRunner& runner_;
  const CaseSettings& settings_;
  SpeedSample sample_;
  int calls_;               // per look at the clock
  int reference_runs_ = 1;  // per round
  double spent_ms_ = 0;
  Stopwatch watch_;
};

}  // namespace

CaseRun run_graded_case(const PluginFile& plugin, const std::string& file_name, const TaskCase& task_case,
                        bool timed, const CaseSettings& settings, HiddenSeeds& seeds) {
  CaseRun result;
  bool measuring = false;
  try {
    const bool may_use_gpu = plugin.is_python || plugin.source.extension() == ".cu";
    CaseRunner runner(plugin, task_case,
                      !timed        ? 1
                      : may_use_gpu ? timed_sets_on_gpu
                                    : timed_sets,
                      settings, seeds);
    for (int i = 0; i < checked_repetitions; ++i) {
      runner.prepare(1);
      runner.run(1);
      if (!runner.check(1, result)) return result;
    }
    measuring = true;
    result.on_gpu = runner.is_cuda();
    if (timed) Measurement(runner, settings).run(result);
  } catch (const PluginFailure& failure) {
    result.problem = fmt::format("{} {}", file_name, failure.what());
    result.failed_while_timed = measuring;
    result.speed.reset();
  }
  return result;
}

}  // namespace tandem
