#include "tandem/study/study_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/machine.h"
#include "tandem/report/study_plots.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/findings.h"
#include "tandem/study/measure.h"
#include "tandem/study/plugin/peers.h"
#include "tandem/study/plugin/plugin_rows.h"

namespace tandem {
namespace {

// `reference` is skipped when it would take minutes, at 1 to 2 ns per step, and four runs: one is checked,
// one warms up, two are timed.
constexpr std::int64_t max_reference_steps = 3'000'000'000, max_quick_steps = 300'000'000;

// A reference that would not fit into the time limit is left out and named; one that is always too slow is
// not.
bool is_too_slow(const StudyCase& study_case, const StudyOptions& options, StudyProgress& progress) {
  if (study_case.reference_steps > (options.quick ? max_quick_steps : max_reference_steps)) return true;
  const double expected_ms = 4 * 2e-6 * static_cast<double>(study_case.reference_steps);
  if (expected_ms <= progress.left_ms()) return false;
  progress.leave_out(study_case.name + ", reference");
  return true;
}

bool contains(const auto& list, const auto& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.numel()));
  on_dtype(TypeList<float, double, std::uint8_t, std::int32_t, std::int64_t>{}, tensor.dtype(), "study",
           [&]<class T>() {
             for (T value : tensor.to_vector<T>()) values.push_back(static_cast<double>(value));
           });
  return values;
}

// Compares results with exact values of some elements and with all elements of the first correct result.
class Oracle {
 public:
  Oracle(const StudyCase& study_case, std::int64_t elements)
      : elements_(elements), tolerance_(study_case.tolerance) {
    constexpr std::int64_t samples = 499;  // evenly spaced, including the first and the last element
    const std::int64_t count = std::min(samples, elements);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t element = count > 1 ? i * (elements - 1) / (count - 1) : 0;
      sampled_.push_back({element, study_case.exact(element)});
      max_magnitude_ = std::max(max_magnitude_, std::abs(sampled_.back().value));
    }
  }

  // The maximum difference relative to the maximum magnitude; infinite for NaN. Later results are also
  // compared with the first correct one.
  double error_of(const Tensor& result) {
    if (result.numel() != elements_) return std::numeric_limits<double>::infinity();
    std::vector<double> values = to_doubles(result);
    double worst = 0;
    const auto compare = [&](double actual, double expected) {
      const double difference = std::abs(actual - expected);
      worst = difference <= worst         ? worst
              : std::isfinite(difference) ? difference
                                          : std::numeric_limits<double>::infinity();
    };
    for (const auto& [element, value] : sampled_) compare(values[element], value);
    for (std::size_t i = 0; i < verified_.size(); ++i) compare(values[i], verified_[i]);
    const double error = worst / std::max(max_magnitude_, 1e-300);
    if (verified_.empty() && error <= tolerance_) verified_ = std::move(values);
    return error;
  }

 private:
  struct Sample {
    std::int64_t element;
    double value;
  };
  std::int64_t elements_;
  double tolerance_;
  std::vector<Sample> sampled_;
  std::vector<double> verified_;
  double max_magnitude_ = 0;
};

class Runner {
 public:
  Runner(const StudyCase& study_case, const StudyOptions& options, StudyProgress& progress)
      : case_(study_case), progress_(progress) {
    if (options.quick) measurement_ = {.budget_ms = 120, .min_repetitions = 3, .max_repetitions = 20};
  }

  // Adds the row of this version, unless the time limit has passed.
  void add_row(std::vector<StudyRow>& rows, Oracle& oracle, Version version, Device device,
               std::optional<int> threads = {}) {
    StudyRow row{
        .case_name = case_.name, .version = std::string(name_of(version)), .device = device.to_string()};
    row.threads = threads;
    if (threads.value_or(0) > usable_cpus()) row.note = "oversubscribed";
    if (!start(row)) return;
    run(row, oracle, version, device);
    rows.push_back(std::move(row));
  }

  // The same for a plugin. One that cannot compute this case has no row if it is a peer.
  void add_row(std::vector<StudyRow>& rows, Oracle& oracle, const PluginVersion& plugin, const Tensor& result,
               std::optional<int> threads = {}) {
    StudyRow row{.case_name = case_.name, .version = plugin.file.name, .device = plugin.device.to_string()};
    row.threads = threads;
    if (threads.value_or(0) > usable_cpus()) row.note = "oversubscribed";
    if (!start(row)) return;
    const PluginCase plugin_case{.function = case_.function,
                                 .inputs = case_.inputs,
                                 .result = result,
                                 .error_of = [&](const Tensor& tensor) { return oracle.error_of(tensor); },
                                 .tolerance = case_.tolerance,
                                 .bytes = case_.bytes,
                                 .tf32 = case_.peak_precision == PeakPrecision::tf32};
    switch (measure_plugin(row, plugin, plugin_case, measurement_)) {
      case PluginResult::measured:
        break;
      case PluginResult::unsupported:
        return;
      case PluginResult::unusable:
        progress_.add_finding(fmt::format("{} does not work here: it {}.", row.version, row.failure));
        return;
    }
    if (row.agrees) add_rates(row, parse_device(row.device));
    rows.push_back(std::move(row));
  }

 private:
  bool start(const StudyRow& row) {
    if (!progress_.start(fmt::format("{}, {}", case_.name, version_label(row)))) return false;
    measurement_.max_ms = std::min(measurement_.max_ms, progress_.left_ms());
    return true;
  }

  void run(StudyRow& row, Oracle& oracle, Version version, Device device) const {
    const std::vector<std::vector<Tensor>> sets = inputs_on(device);
    row.figures["max_error"] = oracle.error_of(case_.compute(sets[0], version));
    row.agrees = row.value("max_error") <= case_.tolerance;
    if (!row.agrees) {
      set_times(row, not_timed);
      return;
    }
    std::vector<Tensor> results(sets.size());
    const Timing timing = measure(
        device, [&](int i) { results[i % sets.size()] = case_.compute(sets[i % sets.size()], version); },
        measurement_);
    set_times(row, timing);
    if (device.is_cuda()) row.figures["with_copies_ms"] = with_copies(version, device).median_ms;
    add_rates(row, device);
  }

  std::vector<std::vector<Tensor>> inputs_on(Device device) const {
    if (!device.is_cuda()) return {case_.inputs};
    std::vector<std::vector<Tensor>> sets(static_cast<std::size_t>(rotated_sets(case_.bytes)));
    for (auto& set : sets)
      for (const Tensor& input : case_.inputs) set.push_back(input.to(device));
    return sets;
  }

  Timing with_copies(Version version, Device device) const {
    return measure_wall(
        device,
        [&](int) {
          std::vector<Tensor> inputs;
          for (const Tensor& input : case_.inputs) inputs.push_back(input.to(device));
          case_.compute(inputs, version).cpu();
        },
        measurement_);
  }

  void add_rates(StudyRow& row, Device device) const {
    const double gb_per_s = static_cast<double>(case_.bytes) / row.value("median_ms") / 1e6;
    double share = gb_per_s / copy_gb_per_s(device, case_.bytes);
    if (case_.operations > 0) {
      row.figures["gflop_per_s"] = static_cast<double>(case_.operations) / row.value("median_ms") / 1e6;
      if (case_.peak_precision)
        share = std::max(share, row.value("gflop_per_s") / matmul_gflop_per_s(device, *case_.peak_precision));
    }
    if (case_.operations == 0 || !case_.peak_precision || case_.bytes * 20 > case_.operations)
      row.figures["gb_per_s"] = gb_per_s;
    row.figures["share_of_peak"] = share;
  }

  const StudyCase& case_;
  StudyProgress& progress_;
  MeasureOptions measurement_{.budget_ms = 600, .min_repetitions = 5, .max_repetitions = 50};
};

std::string requested_versions(const StudyOptions& options) {
  std::string text;
  for (Version version : options.versions)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(version));
  return text.empty() ? "none" : text;
}

}  // namespace

void check_fits(const std::string& study, const std::string& name, double elements) {
  // Each value and its f64 copy for comparison, with a margin for the rest of the system.
  const double needed = 16 * elements, available = static_cast<double>(machine_facts().cpu.memory_bytes);
  constexpr double gib = 1 << 30;
  check(needed <= available,
        "[study {}] case \"{}\" needs about {:.0f} GiB of memory, this machine has {:.0f}", study, name,
        needed / gib, available / gib);
}

void bound_shares(std::vector<StudyRow>& rows) {
  std::map<std::string, double> best;
  for (const StudyRow& row : rows)
    if (const double min_ms = row.figures["min_ms"].value_or(row.value("median_ms"));
        row.figures["share_of_peak"] && min_ms > 0)
      best[row.device] =
          std::max(best[row.device], row.value("share_of_peak") * row.value("median_ms") / min_ms);
  for (StudyRow& row : rows)
    if (row.figures["share_of_peak"]) *row.figures["share_of_peak"] /= std::max(best[row.device], 1.0);
}

std::vector<Fact> version_legend(const std::string& cuda_simple, const std::string& cuda) {
  return {{"reference", "the definition as plain loops: one thread, scalar instructions only"},
          {"simd", "one thread with vector (SIMD) instructions"},
          {"parallel", "vector instructions on all CPU cores"},
          {"cuda-simple", "a textbook CUDA kernel: " + cuda_simple},
          {"cuda", "a tuned CUDA kernel: " + cuda}};
}

std::vector<StudyRow> run_case(const StudyCase& study_case, const StudyOptions& options,
                               StudyProgress& progress) {
  std::vector<StudyRow> rows;
  const Tensor result = study_case.compute(study_case.inputs, Version::parallel);
  Oracle oracle(study_case, result.numel());
  Runner runner(study_case, options, progress);

  for (Version version : all_versions) {
    if (!contains(options.versions, version)) continue;
    if (version == Version::reference && is_too_slow(study_case, options, progress)) continue;
    for (Device device : all_devices()) {
      if (backend_of(version) != device.backend) continue;
      if (version != Version::reference && !contains(options.devices, device)) continue;
      if (version == Version::parallel && !options.threads.empty()) {
        for (int threads : options.threads) {
          const ThreadCountScope scope(threads);
          runner.add_row(rows, oracle, version, device, threads);
        }
      } else {
        runner.add_row(rows, oracle, version, device);
      }
    }
  }
  for (const PluginVersion& plugin : plugin_versions(options)) {
    if (!contains(options.devices, plugin.device) && plugin.is_peer) continue;
    if (options.threads.empty() || plugin.is_peer)
      runner.add_row(rows, oracle, plugin, result);
    else
      for (int threads : options.threads) runner.add_row(rows, oracle, plugin, result, threads);
  }
  check(!rows.empty() || progress.is_over() || !options.peers.empty(),
        "[study] case \"{}\": none of the requested versions ({}) can run here", study_case.name,
        requested_versions(options));
  bound_shares(rows);
  const bool has_reference =
      !rows.empty() && rows.front().version == name_of(Version::reference) && rows.front().agrees;
  for (StudyRow& row : rows)
    if (has_reference && row.agrees)
      row.figures["speedup"] = rows.front().value("median_ms") / row.value("median_ms");
  return rows;
}

StudyReport run_cases(StudyReport report, const std::vector<std::string>& names,
                      StudyCase (*make_case)(const std::string& name, const StudyOptions& options),
                      const StudyOptions& options) {
  StudyProgress progress(options);
  for (Fact& fact : plugin_legend(options)) report.versions.push_back(std::move(fact));
  for (const std::string& name : names) {
    if (progress.is_over()) {
      progress.leave_out(name);
      continue;
    }
    const std::vector<StudyRow> rows = run_case(make_case(name, options), options, progress);
    report.rows.insert(report.rows.end(), rows.begin(), rows.end());
  }
  report.findings = general_findings(report.rows, usable_cpus());
  for (std::string& finding : progress.findings()) report.findings.push_back(std::move(finding));
  if (const auto missing = missing_peers(options.peers); !missing.empty())
    report.findings.push_back(
        fmt::format("Not installed here, so not compared: {}.", fmt::join(missing, ", ")));
  report.plots = standard_plots(report.rows, usable_cpus());
  return report;
}

}  // namespace tandem
