// Numbers are written in the shortest form that parses to the same double.
#include "tandem/report/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace tandem {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string();
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

std::string to_csv_text(std::span<const StudyReport> reports) {
  std::string text =
      "study,case,version,device,threads,median_ms,min_ms,max_ms,with_copies_ms,speedup,gb_per_s,gflop_per_s,"
      "share_of_peak,agrees,max_error\n";
  for (const StudyReport& report : reports)
    for (const StudyRow& row : report.rows)
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(report.study),
                          csv_field(row.case_name), csv_field(row.version), csv_field(row.device),
                          row.threads ? fmt::format("{}", *row.threads) : "", number(row.median_ms),
                          number(row.min_ms), number(row.max_ms), number(row.with_copies_ms),
                          number(row.speedup), number(row.gb_per_s), number(row.gflop_per_s),
                          number(row.share_of_peak), row.agrees, number(row.max_error));
  return text;
}

std::string epoch_csv_header() {
  return "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
         "waited_seconds\n";
}

std::string epoch_csv_row(const EpochRecord& record) {
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", record.epoch, number(record.train_loss),
                     number(record.train_accuracy), number(record.val_loss), number(record.val_accuracy),
                     number(record.learning_rate), number(record.seconds), number(record.samples_per_second),
                     number(record.waited_seconds));
}

}  // namespace tandem
