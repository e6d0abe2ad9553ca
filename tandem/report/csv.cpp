// Numbers are written in the shortest form that parses to the same double.
#include "tandem/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "tandem/report/study_rows.h"

namespace tandem {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string();
}

std::string value_text(const StudyValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return csv_field(*text);
  if (const int* const count = std::get_if<int>(&value)) return fmt::format("{}", *count);
  if (const bool* const flag = std::get_if<bool>(&value)) return fmt::format("{}", *flag);
  if (const double* const figure = std::get_if<double>(&value)) return number(*figure);
  return {};
}

}  // namespace

std::string csv_field(std::string_view text) {
  const bool quoted = text.find_first_of(",\"\r\n") != std::string_view::npos ||
                      (!text.empty() && (text.front() == ' ' || text.back() == ' '));
  if (!quoted) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + '"';
}

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

std::string to_csv_text(std::span<const StudyReport> reports) {
  std::vector<StudyField> fields;
  std::ranges::copy_if(study_fields, std::back_inserter(fields), &StudyField::in_csv);
  std::ranges::stable_sort(fields, {}, &StudyField::column);
  std::string text = "study";
  for (const StudyField& field : fields) text += fmt::format(",{}", field.key);
  text += '\n';
  for (const StudyReport& report : reports)
    for (const StudyRow& row : report.rows) {
      text += csv_field(report.study);
      for (const StudyField& field : fields) text += ',' + value_text(study_value(row, field));
      text += '\n';
    }
  return text;
}

std::string epoch_csv_header(std::span<const std::string> metrics, bool has_shards) {
  std::string text =
      "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
      "waited_seconds";
  if (has_shards) text += ",exchange_seconds";
  for (const std::string& name : metrics) text += fmt::format(",{}", csv_field(name));
  return text + "\n";
}

std::string epoch_csv_row(const EpochRecord& record, bool has_shards) {
  std::string last = has_shards ? "," + number(record.exchange_seconds) : "";
  for (const NamedFigure& metric : record.metrics) last += fmt::format(",{}", number(metric.value));
  return fmt::format("{},{},{},{},{},{},{},{},{}{}\n", record.epoch, number(record.train_loss),
                     number(record.train_accuracy), number(record.val_loss), number(record.val_accuracy),
                     number(record.learning_rate), number(record.seconds), number(record.samples_per_second),
                     number(record.waited_seconds), last);
}

}  // namespace tandem
