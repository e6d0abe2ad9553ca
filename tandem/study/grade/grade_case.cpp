#include "tandem/study/grade/grade_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/core/clock.h"
#include "tandem/study/grade/array_difference.h"
#include "tandem/study/measure.h"

namespace tandem {
namespace {

constexpr int checked_repetitions = 4;
constexpr int timed_sets = 4;  // calls between two looks at the clock
constexpr int min_rounds = 12, max_rounds = 80;

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

  double run_reference(int count) const {
    const Stopwatch watch;
    for (int set = 0; set < count; ++set)
      task_case_.reference(inputs_[static_cast<std::size_t>(set)], settings_.reference);
    return watch.elapsed_ms();
  }

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
  KernelProcess process_;
};

// Whether the reference's times agree well enough to stop.
bool is_settled(const SpeedSample& sample, double max_spread) {
  return speed_of(sample).spread <= max_spread / 2;
}

void measure(CaseRunner& runner, const CaseSettings& settings, CaseRun& result) {
  const ThreadCountScope threads(settings.threads);
  SpeedSample sample;
  double spent_ms = 0;
  const Stopwatch watch;
  for (int round = 0; round < max_rounds; ++round) {
    runner.prepare(timed_sets);
    if (round == 0) runner.run_reference(timed_sets);  // warm up
    double student_ms = 0, reference_ms = 0;
    if (round % 2 == 0) reference_ms = runner.run_reference(timed_sets);
    student_ms = runner.run(timed_sets);
    if (round % 2 == 1) reference_ms = runner.run_reference(timed_sets);
    result.failed_while_timed = !runner.check(timed_sets, result);
    if (result.failed_while_timed) return;
    sample.student_ms.push_back(student_ms / timed_sets);
    sample.reference_ms.push_back(reference_ms / timed_sets);
    spent_ms += student_ms + reference_ms;
    const bool enough = round + 1 >= min_rounds && spent_ms >= settings.measured_ms;
    if (enough && (is_settled(sample, settings.max_spread) || spent_ms >= 3 * settings.measured_ms)) break;
    if (watch.elapsed_ms() > settings.time_left_s * 1e3) break;
  }
  result.speed = speed_of(sample);
}

}  // namespace

CaseRun run_graded_case(const PluginFile& plugin, const std::string& file_name, const TaskCase& task_case,
                        bool timed, const CaseSettings& settings, HiddenSeeds& seeds) {
  CaseRun result;
  bool measuring = false;
  try {
    CaseRunner runner(plugin, task_case, timed ? timed_sets : 1, settings, seeds);
    for (int i = 0; i < checked_repetitions; ++i) {
      runner.prepare(1);
      runner.run(1);
      if (!runner.check(1, result)) return result;
    }
    measuring = true;
    if (timed) measure(runner, settings, result);
  } catch (const PluginFailure& failure) {
    result.problem = fmt::format("{} {}", file_name, failure.what());
    result.failed_while_timed = measuring;
    result.speed.reset();
  }
  return result;
}

}  // namespace tandem
