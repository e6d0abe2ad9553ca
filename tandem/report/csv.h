// Rows as CSV (RFC 4180, but lines end in '\n'): a header, a line a row, absent figures empty, full
// precision. Columns: study and the JSON's keys, so that the studies of one run fit in one file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tandem/report/study_report.h"
#include "tandem/report/training_report.h"

namespace tandem {

// Quoted where it must be: a comma, a quote, a line end, or a space at either end.
std::string csv_field(std::string_view text);

std::string to_csv_text(std::span<const StudyReport> reports);

// A training run's log: a header, then a line an epoch, each ending in '\n'.
std::string epoch_csv_header();
std::string epoch_csv_row(const EpochRecord& record);

}  // namespace tandem
