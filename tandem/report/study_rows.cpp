// Grouping, columns and the agreement sentences.
#include "tandem/report/study_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tandem {
namespace {

std::string optional_figure(const std::optional<double>& value, Unit unit) {
  return value ? format_number(*value, unit) : std::string();
}

// Rounded to three significant digits: "24,100".
std::string rounded_count(double count) {
  return format_count(std::llround(std::strtod(fmt::format("{:.2e}", count).c_str(), nullptr)));
}

// "98.21 ± 0.05 %", or with a sign "+2.31 ± 0.20" in percentage points.
std::string points(const std::optional<double>& share, const std::optional<double>& spread,
                   bool signed_lead) {
  if (!share) return {};
  std::string text = signed_lead ? fmt::format("{:+.2f}", 100 * *share) : fmt::format("{:.2f}", 100 * *share);
  if (spread) text += fmt::format(" ± {:.2f}", 100 * *spread);
  return signed_lead ? text : text + " %";
}

}  // namespace

std::string study_cell(const StudyRow& row, StudyField field) {
  switch (field) {
    case StudyField::version:
      return row.version;
    case StudyField::device:
      return row.device;
    case StudyField::threads:
      return row.threads ? fmt::format("{}", *row.threads) : std::string();
    case StudyField::workers:
      return row.workers ? fmt::format("{}", *row.workers) : std::string();
    case StudyField::epoch:
      return row.epoch ? fmt::format("{}", *row.epoch) : std::string();
    case StudyField::accuracy:
      return points(row.accuracy, row.accuracy_spread, false);
    case StudyField::lead:
      return points(row.lead, row.lead_spread, true);
    case StudyField::median:
      return format_number(row.median_ms, Unit::milliseconds);
    case StudyField::range:
      return format_ms_range(row.min_ms, row.max_ms);
    case StudyField::with_copies:
      return optional_figure(row.with_copies_ms, Unit::milliseconds);
    case StudyField::speedup:
      return optional_figure(row.speedup, Unit::ratio);
    case StudyField::samples:
      return row.samples_per_s ? rounded_count(*row.samples_per_s) : std::string();
    case StudyField::waited:
      return optional_figure(row.waited_ms, Unit::milliseconds);
    case StudyField::efficiency:
      return optional_figure(row.efficiency, Unit::share);
    case StudyField::gb:
      return optional_figure(row.gb_per_s, Unit::none);
    case StudyField::gflop:
      return optional_figure(row.gflop_per_s, Unit::none);
    case StudyField::share:
      return optional_figure(row.share_of_peak, Unit::share);
  }
  return {};
}

std::vector<StudyColumn> study_columns(const std::vector<StudyRow>& rows) {
  std::vector<StudyColumn> columns{
      {StudyField::version, "version", "how it was computed", false},
      {StudyField::device, "device", "where it was computed", false},
      {StudyField::threads, "threads", "CPU threads", true},
      {StudyField::workers, "workers", "threads or processes that augment", true},
      {StudyField::epoch, "epoch", "epochs trained so far", true},
      {StudyField::accuracy, "accuracy", "on the test images, mean and standard deviation over seeds", true},
      {StudyField::lead, "lead",
       "accuracy gain over plain in percentage points, mean and standard deviation over seeds", true},
      {StudyField::median, "median",
       "median time of the repetitions (training: one epoch), data already on the device", true},
      {StudyField::range, "min–max", "fastest and slowest repetition", true},
      {StudyField::with_copies, "+ copies",
       "median time including the copies to the device and back (training: all images, once)", true},
      {StudyField::speedup, "speed-up", "how many times faster than the reference (training: than the CPU)",
       true},
      {StudyField::samples, "samples/s", "samples trained or augmented per second", true},
      {StudyField::waited, "waited", "time per epoch the trainer waited for images", true},
      {StudyField::efficiency, "efficiency", "samples/s per worker, relative to a single worker", true},
      {StudyField::gb, "GB/s", "memory read and written per second", true},
      {StudyField::gflop, "GFLOP/s", "additions and multiplications per second", true},
      {StudyField::share, "of peak", "share of the peak measured on this machine", true}};
  std::erase_if(columns, [&](const StudyColumn& column) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const StudyRow& row) { return study_cell(row, column.field).empty(); });
  });
  return columns;
}

std::vector<CaseRows> rows_by_case(const std::vector<StudyRow>& rows) {
  std::vector<CaseRows> cases;
  for (const StudyRow& row : rows) {
    if (!row.in_table) continue;
    auto found = std::find_if(cases.begin(), cases.end(),
                              [&](const CaseRows& group) { return group.case_name == row.case_name; });
    if (found == cases.end()) found = cases.insert(cases.end(), {.case_name = row.case_name, .rows = {}});
    found->rows.push_back(row);
  }
  for (CaseRows& group : cases) {
    if (group.rows.size() < 2) continue;
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const StudyRow& row = group.rows[i];
      if (!row.agrees || row.accuracy || !std::isfinite(row.median_ms)) continue;
      if (group.fastest < 0 || row.median_ms < group.rows[group.fastest].median_ms)
        group.fastest = static_cast<int>(i);
    }
  }
  return cases;
}

std::vector<std::string> versions_of(const std::vector<StudyRow>& rows) {
  std::vector<std::string> versions;
  for (const StudyRow& row : rows)
    if (std::find(versions.begin(), versions.end(), row.version) == versions.end())
      versions.push_back(row.version);
  return versions;
}

std::string version_label(const StudyRow& row) {
  if (row.workers)
    return fmt::format("{} with {} worker{}", row.version, *row.workers, *row.workers == 1 ? "" : "s");
  if (!row.threads) return row.version;
  return fmt::format("{} with {} thread{}", row.version, *row.threads, *row.threads == 1 ? "" : "s");
}

bool is_compared(const std::vector<StudyRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const StudyRow& row) { return !row.accuracy; });
}

int count_wrong(const std::vector<StudyRow>& rows) {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const StudyRow& row) { return !row.agrees; }));
}

std::vector<std::string> agreement_sentences(const std::vector<StudyRow>& rows) {
  std::vector<std::string> sentences;
  std::optional<double> max_error;
  for (const StudyRow& row : rows) {
    const bool has_error = row.max_error && std::isfinite(*row.max_error);
    if (has_error) max_error = std::max(max_error.value_or(0), *row.max_error);
    if (row.agrees) continue;
    sentences.push_back(fmt::format(
        "WRONG: {} on {} disagrees with the reference on {}{}.", version_label(row), row.device,
        row.case_name,
        has_error ? fmt::format(", the maximum error is {}", format_number(*row.max_error)) : ""));
  }
  if (!sentences.empty() || !is_compared(rows)) return sentences;
  if (!max_error) return {"All versions agree."};
  if (*max_error == 0) return {"All versions agree exactly."};
  return {fmt::format("All versions agree; the maximum error is {}.", format_number(*max_error))};
}

}  // namespace tandem
