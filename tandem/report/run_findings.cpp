#include "tandem/report/run_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include "tandem/report/interval.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace detail {

using Runs = std::span<const ComparedRun>;

std::int64_t test_images(const TrainingReport& report) {
  return std::accumulate(report.confusion.begin(), report.confusion.end(), std::int64_t{0});
}

Spread spread_of(const TrainingReport& report, double EpochRecord::*figure) {
  std::vector<double> values;
  for (const EpochRecord& record : report.epochs)
    if (std::isfinite(record.*figure)) values.push_back(record.*figure);
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return {.median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
          .min = values.front(),
          .max = values.back()};
}

std::string value_of(const std::vector<Fact>& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? "–" : found->value;
}

std::vector<ComparisonRow> option_rows(Runs runs) {
  std::vector<std::vector<Fact>> options;
  for (const ComparedRun& run : runs) options.push_back(run.options);
  return compared_facts(options);
}

std::vector<std::string> differing_options(Runs runs) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : option_rows(runs))
    if (row.marked) names.push_back(row.cells[0]);
  return names;
}

}  // namespace detail

namespace {

using namespace detail;

// The test images of each class: those of other data differ, even if they are as many.
std::vector<std::int64_t> class_counts(const TrainingReport& report) {
  std::vector<std::int64_t> counts(report.classes.size());
  for (std::size_t i = 0; i < report.confusion.size(); ++i) counts[i / counts.size()] += report.confusion[i];
  return counts;
}

std::string letters(Runs runs, const auto& chosen) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (chosen(i)) all.push_back(letter_of(i));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string option_finding(Runs runs) {
  const std::vector<std::string> names = differing_options(runs);
  if (names.empty()) return "All options are equal.";
  return fmt::format("{} {}: {}.", names.size(), names.size() == 1 ? "option differs" : "options differ",
                     fmt::join(names, ", "));
}

std::string accuracy_finding(Runs runs) {
  std::vector<std::size_t> tested;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::isfinite(runs[i].report.test_accuracy) && test_images(runs[i].report) > 0) tested.push_back(i);
  if (tested.size() < 2) return {};
  const auto on = [&](std::size_t i) {
    return fmt::format("{} {} images of {}", format_count(test_images(runs[i].report)),
                       runs[i].report.test_name, one_line(value_of(runs[i].options, "data")));
  };
  const auto same_images = [&](std::size_t i) {
    return value_of(runs[i].options, "data") == value_of(runs[tested[0]].options, "data") &&
           runs[i].report.test_name == runs[tested[0]].report.test_name &&
           runs[i].report.classes == runs[tested[0]].report.classes &&
           class_counts(runs[i].report) == class_counts(runs[tested[0]].report);
  };
  for (const std::size_t i : tested)
    if (!same_images(i))
      return fmt::format("{} was tested on {}, {} on {}: their accuracies are not compared.",
                         letter_of(tested[0]), on(tested[0]), letter_of(i), on(i));
  const std::size_t best =
      *std::ranges::max_element(tested, {}, [&](std::size_t i) { return runs[i].report.test_accuracy; });
  if (std::ranges::all_of(tested, [&](std::size_t i) {
        return runs[i].report.test_accuracy == runs[best].report.test_accuracy;
      }))
    return fmt::format("All test accuracies are equal: {}.",
                       describe_accuracy(runs[best].report.test_accuracy, test_images(runs[best].report)));
  const auto interval = [&](std::size_t i) {
    return wilson_interval(runs[i].report.test_accuracy, test_images(runs[i].report));
  };
  const auto overlaps = [&](std::size_t i) {
    return i != best && std::ranges::find(tested, i) != tested.end() &&
           interval(i).high >= interval(best).low;
  };
  const std::string close = letters(runs, overlaps);
  const std::string figure =
      fmt::format("{} has the highest test accuracy: {}", letter_of(best),
                  describe_accuracy(runs[best].report.test_accuracy, test_images(runs[best].report)));
  return close.empty()
             ? figure + ". No other interval overlaps with it."
             : fmt::format("{}. It overlaps with that of {}: the difference may be chance.", figure, close);
}

std::string time_finding(Runs runs) {
  std::vector<Spread> times;
  for (const ComparedRun& run : runs) times.push_back(spread_of(run.report, &EpochRecord::seconds));
  std::size_t fast = 0, slow = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!(times[i].median > 0)) return {};
    if (times[i].median < times[fast].median) fast = i;
    if (times[i].median > times[slow].median) slow = i;
  }
  const auto text = [&](std::size_t i) {
    return fmt::format("{} ({})", format_number(1e3 * times[i].median, Unit::milliseconds),
                       format_ms_range(1e3 * times[i].min, 1e3 * times[i].max));
  };
  if (times[fast].max >= times[slow].min)
    return fmt::format("The times of an epoch overlap: from {} in {} to {} in {}.", text(fast),
                       letter_of(fast), text(slow), letter_of(slow));
  return fmt::format("An epoch of {} takes {}, {:.3g} times as long as one of {}, {}.", letter_of(slow),
                     text(slow), times[slow].median / times[fast].median, letter_of(fast), text(fast));
}

}  // namespace

std::vector<std::string> comparison_findings(Runs runs) {
  std::vector<std::string> findings{option_finding(runs)};
  if (!same_for_all(runs, [](const ComparedRun& run) { return run.data; }))
    findings.push_back(
        "The runs did not train and validate on the same images: their accuracies after each "
        "epoch are not those of one task.");
  findings.push_back(accuracy_finding(runs));
  findings.push_back(time_finding(runs));
  if (!same_for_all(runs, [](const ComparedRun& run) { return value_of(run.report.provenance, "host"); }))
    findings.push_back("They ran on different machines.");
  const std::string unfinished =
      letters(runs, [&](std::size_t i) { return !std::isfinite(runs[i].report.test_accuracy); });
  if (!unfinished.empty()) findings.push_back(fmt::format("Not finished: {}.", unfinished));
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const std::string& warning : runs[i].report.warnings)
      findings.push_back(fmt::format("Warning of {}: {}.", letter_of(i), one_line(warning)));
  std::erase(findings, "");
  return findings;
}

}  // namespace tandem
