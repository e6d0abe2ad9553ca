// Grouping, columns and the agreement sentences.
#include "tandem/report/study_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// Rounded to three significant digits: "24,100".
std::string rounded_count(double count) {
  return format_count(std::llround(std::strtod(fmt::format("{:.2e}", count).c_str(), nullptr)));
}

// "98.21 ± 0.05 %", or with a sign "+2.31 ± 0.20" in percentage points.
std::string points(double share, const std::optional<double>& spread, bool signed_lead) {
  std::string text = signed_lead ? fmt::format("{:+.2f}", 100 * share) : fmt::format("{:.2f}", 100 * share);
  if (spread) text += fmt::format(" ± {:.2f}", 100 * *spread);
  return signed_lead ? text : text + " %";
}

std::string figure_cell(double value, const std::optional<double>& next, const StudyField& field) {
  switch (field.style) {
    case CellStyle::rounded:
      return rounded_count(value);
    case CellStyle::range_pair:
      return format_ms_range(value, next.value_or(value));
    case CellStyle::percent_pair:
      return points(value, next, false);
    case CellStyle::points_pair:
      return points(value, next, true);
    case CellStyle::value:
    case CellStyle::bar:
      break;
  }
  return format_number(value, field.unit);
}

// The field that shares the cell of a pair.
const StudyField& next_field(const StudyField& field) {
  const auto* const found = std::ranges::find(study_fields, field.key, &StudyField::key);
  expect(found + 1 < std::end(study_fields));
  return found[1];
}

}  // namespace

StudyValue study_value(const StudyRow& row, const StudyField& field) {
  const auto of_member = [&](auto member) -> StudyValue {
    if constexpr (std::is_same_v<decltype(member), std::monostate>) {
      const std::optional<double> figure = row.figures.find(field.key);
      return figure ? StudyValue(*figure) : StudyValue();
    } else if constexpr (std::is_same_v<decltype(member), std::optional<int> StudyRow::*>) {
      return row.*member ? StudyValue(*(row.*member)) : StudyValue();
    } else {
      return row.*member;
    }
  };
  return std::visit(of_member, field.member);
}

std::string study_cell(const StudyRow& row, const StudyField& field) {
  const StudyValue value = study_value(row, field);
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const int* const count = std::get_if<int>(&value)) return fmt::format("{}", *count);
  if (const double* const number = std::get_if<double>(&value)) {
    const bool is_pair = field.style == CellStyle::range_pair || field.style == CellStyle::percent_pair ||
                         field.style == CellStyle::points_pair;
    return figure_cell(*number, is_pair ? row.figures.find(next_field(field).key) : std::nullopt, field);
  }
  return {};
}

bool is_number(const StudyField& field) {
  return !std::holds_alternative<std::string StudyRow::*>(field.member);
}

std::vector<StudyField> study_columns(const std::vector<StudyRow>& rows) {
  std::vector<StudyField> columns;
  for (const StudyField& field : study_fields) {
    const bool has_value =
        std::ranges::any_of(rows, [&](const StudyRow& row) { return !study_cell(row, field).empty(); });
    if (!field.header.empty() && has_value) columns.push_back(field);
  }
  std::ranges::stable_sort(columns, {}, &StudyField::column);
  return columns;
}

std::vector<CaseRows> rows_by_case(const std::vector<StudyRow>& rows) {
  std::vector<CaseRows> cases;
  for (const StudyRow& row : rows) {
    auto found = std::find_if(cases.begin(), cases.end(),
                              [&](const CaseRows& group) { return group.case_name == row.case_name; });
    if (found == cases.end()) found = cases.insert(cases.end(), {.case_name = row.case_name, .rows = {}});
    found->rows.push_back(row);
  }
  for (CaseRows& group : cases) {
    if (group.rows.size() < 2) continue;
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const StudyRow& row = group.rows[i];
      if (!row.agrees || !row.basis.empty() || row.figures["plain"] || !std::isfinite(row.value("median_ms")))
        continue;
      if (group.fastest < 0 || row.value("median_ms") < group.rows[group.fastest].value("median_ms"))
        group.fastest = static_cast<int>(i);
    }
  }
  return cases;
}

const StudyRow* fastest_row(const std::vector<StudyRow>& rows, std::string_view case_name,
                            std::string_view version) {
  const StudyRow* best = nullptr;
  for (const StudyRow& row : rows)
    if (row.case_name == case_name && row.version == version && row.agrees && row.value("median_ms") > 0 &&
        (!best || row.value("median_ms") < best->value("median_ms")))
      best = &row;
  return best;
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
  return std::any_of(rows.begin(), rows.end(), [](const StudyRow& row) { return !row.figures["plain"]; });
}

int count_wrong(const std::vector<StudyRow>& rows) {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const StudyRow& row) { return !row.agrees; }));
}

std::string_view wrong_mark(const StudyRow& row) {
  return row.agrees ? "" : row.failure.empty() ? "WRONG" : "FAILED";
}

std::vector<std::string> agreement_sentences(const std::vector<StudyRow>& rows) {
  std::vector<std::string> sentences;
  std::optional<double> max_error;
  for (const StudyRow& row : rows) {
    const double error = row.value("max_error");
    const bool has_error = std::isfinite(error);
    if (has_error) max_error = std::max(max_error.value_or(0), error);
    if (row.agrees) continue;
    if (!row.failure.empty()) {
      sentences.push_back(fmt::format("FAILED: {} {} ({}).", version_label(row), row.failure, row.case_name));
      continue;
    }
    sentences.push_back(fmt::format(
        "{}: {} on {} disagrees with the reference on {}{}.", wrong_mark(row), version_label(row), row.device,
        row.case_name, has_error ? fmt::format(", the maximum error is {}", format_number(error)) : ""));
  }
  if (!sentences.empty() || !is_compared(rows)) return sentences;
  if (!max_error) return {"All versions agree."};
  if (*max_error == 0) return {"All versions agree exactly."};
  return {fmt::format("All versions agree; the maximum error is {}.", format_number(*max_error))};
}

}  // namespace tandem
