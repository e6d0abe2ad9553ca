#include "tandem/study/plates_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/study/measure.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr FlowPhase phases[flow_phase_count] = {FlowPhase::decode,   FlowPhase::augment,  FlowPhase::copy,
                                                FlowPhase::forward,  FlowPhase::backward, FlowPhase::update,
                                                FlowPhase::evaluate, FlowPhase::predict,  FlowPhase::other};

std::string time_text(double ms) {
  return format_number(ms, Unit::milliseconds);
}

// "forward 71 %, …": the longest phases, down to a tenth of the total.
std::string where_time_goes(const FlowResult& result) {
  std::vector<FlowPhase> sorted(std::begin(phases), std::end(phases));
  std::ranges::stable_sort(sorted, std::greater<>(), [&](FlowPhase phase) { return result[phase]; });
  std::vector<std::string> parts;
  for (const FlowPhase phase : sorted)
    if (parts.empty() || result[phase] >= 0.1 * result.total_ms)
      parts.push_back(fmt::format("{} {:.0f} %", name_of(phase), 100 * result[phase] / result.total_ms));
  return fmt::format("Where the time goes on {}: {}.", result.device.to_string(), fmt::join(parts, ", "));
}

// Whether the first result is the CPU, the base of speed-ups.
bool begins_with_cpu(std::span<const FlowResult> results) {
  return !results.empty() && !results.front().device.is_cuda();
}

}  // namespace

std::string epochs_text(std::int64_t epochs) {
  return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s");
}

const char* name_of(FlowPhase phase) {
  switch (phase) {
    case FlowPhase::decode:
      return "decode";
    case FlowPhase::augment:
      return "augment";
    case FlowPhase::copy:
      return "copy";
    case FlowPhase::forward:
      return "forward";
    case FlowPhase::backward:
      return "backward";
    case FlowPhase::update:
      return "update";
    case FlowPhase::evaluate:
      return "evaluate";
    case FlowPhase::predict:
      return "predict";
    case FlowPhase::other:
      break;
  }
  return "other";
}

double differing_share(const FlowResult& a, const FlowResult& b) {
  if (a.predictions.size() != b.predictions.size() || a.predictions.empty()) return 1;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < a.predictions.size(); ++i) differing += a.predictions[i] != b.predictions[i];
  return static_cast<double>(differing) / static_cast<double>(a.predictions.size());
}

std::vector<StudyRow> plates_rows(std::span<const FlowResult> results) {
  std::vector<StudyRow> rows;
  const auto add = [&](const std::string& name, const FlowResult& result, const Timing& timing) -> StudyRow& {
    rows.push_back({.case_name = name,
                    .version = result.device.is_cuda() ? "cuda" : "cpu",
                    .device = result.device.to_string(),
                    .engine = result.engine});
    set_times(rows.back(), timing);
    return rows.back();
  };
  const auto once = [](double ms) { return Timing{ms, ms, ms}; };
  const auto set_speedup = [&](StudyRow& row, double base_ms) {
    if (begins_with_cpu(results) && base_ms > 0 && row.value("median_ms") > 0)
      row.figures["speedup"] = base_ms / row.value("median_ms");
  };
  for (const FlowResult& result : results) {
    StudyRow& row = add("whole flow", result, once(result.total_ms));
    if (&result != &results.front()) row.figures["max_error"] = differing_share(results.front(), result);
    row.agrees = result.file_agrees && row.figures["max_error"].value_or(0) <= max_differing_share;
    set_speedup(row, results.front().total_ms);
    if (row.agrees) continue;
    set_times(row, not_timed);
    row.figures["speedup"] = std::nullopt;
  }
  for (const FlowResult& result : results) {
    set_speedup(add("an epoch", result, timing_of(result.epoch_ms)),
                timing_of(results.front().epoch_ms).median_ms);
  }
  for (const FlowPhase phase : phases)
    for (const FlowResult& result : results)
      if (result[phase] > 0)  // there is no copy on the CPU
        set_speedup(add(name_of(phase), result, once(result[phase])), results.front()[phase]);
  return rows;
}

std::vector<std::string> plates_findings(std::span<const FlowResult> results) {
  std::vector<std::string> findings;
  const FlowResult& first = results.front();
  std::vector<std::string> totals;
  for (const FlowResult& result : results)
    totals.push_back(
        fmt::format("{} on {}{}", time_text(result.total_ms), result.device.to_string(),
                    &result != &first && begins_with_cpu(results)
                        ? fmt::format(", {:.{}f} times as fast", first.total_ms / result.total_ms,
                                      first.total_ms >= 10 * result.total_ms ? 0 : 1)
                        : ""));
  findings.push_back(fmt::format("{} over {} photographs, each validated on {}, and {} predictions take {}.",
                                 epochs_text(std::ssize(first.epoch_ms)), first.train, first.validation,
                                 format_count(std::ssize(first.predictions)), fmt::join(totals, "; ")));
  for (const FlowResult& result : results) findings.push_back(where_time_goes(result));
  for (const FlowResult& result : results) {
    if (!result.file_agrees)
      findings.push_back(fmt::format("The model file gives different outputs than the model trained on {}.",
                                     result.device.to_string()));
    if (&result == &first) continue;
    findings.push_back(fmt::format("{} and {} agree on {:.1f} % of the test plates (required: {:.0f} %).",
                                   first.device.to_string(), result.device.to_string(),
                                   100 * (1 - differing_share(first, result)),
                                   100 * (1 - max_differing_share)));
  }
  std::vector<std::string> accuracies;
  for (const FlowResult& result : results)
    accuracies.push_back(fmt::format("{:.1f} % on {}", 100 * result.accuracy, result.device.to_string()));
  findings.push_back(fmt::format("Accuracy on the test plates: {}.", fmt::join(accuracies, ", ")));
  return findings;
}

std::vector<Plot> plates_plots(std::span<const FlowResult> results) {
  Plot times{.title = "Time by phase",
             .x_label = "",
             .y_label = "time in the whole flow, logarithmic: lower is better",
             .kind = PlotKind::bars,
             .log_y = true,
             .y_unit = Unit::milliseconds,
             .categories = {},
             .series = {}};
  for (const FlowPhase phase : phases) times.categories.push_back(name_of(phase));
  Plot shares = times;
  shares.title = "Where the time goes";
  shares.y_label = "share of the whole flow";
  shares.log_y = false;
  shares.y_unit = Unit::share;
  Plot curves{.title = "Validation accuracy",
              .x_label = "epoch",
              .y_label = "share of validation photographs classified correctly",
              .y_unit = Unit::share,
              .categories = {},
              .series = {}};
  for (const FlowResult& result : results) {
    times.series.push_back({.name = result.device.to_string(), .x = {}, .y = {}});
    shares.series.push_back(times.series.back());
    for (const FlowPhase phase : phases) {
      times.series.back().y.push_back(result[phase]);
      shares.series.back().y.push_back(result[phase] / result.total_ms);
    }
    Series curve{.name = result.device.to_string(), .x = {}, .y = result.validation_accuracy};
    for (std::size_t epoch = 1; epoch <= curve.y.size(); ++epoch)
      curve.x.push_back(static_cast<double>(epoch));
    curves.series.push_back(std::move(curve));
  }
  return {times, shares, curves};
}

}  // namespace tandem
