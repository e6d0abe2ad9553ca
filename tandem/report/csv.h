// Study rows as CSV (RFC 4180, but lines end in '\n'): a header, one line per row, full precision, absent
// figures empty. The first column is the study, so that several studies fit in one file; the others are the
// keys of the JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/report/training_report.h"

namespace tandem {

// Quotes the text only when it contains a comma, a quote or a line end, or begins or ends with a space.
std::string csv_field(std::string_view text);

// The fields of one line, without quotes; a quote that does not end goes on to the end of the line.
std::vector<std::string> csv_fields(std::string_view line);

std::string to_csv_text(std::span<const StudyReport> reports);

// The log of a training run: a header, then one line per epoch, each ending in '\n'.
// The columns of EpochRecord::metrics come last. EpochRecord::exchange_seconds is a column for runs with
// shards, whatever the number of ranks, which may change when a run is resumed.
std::string epoch_csv_header(std::span<const std::string> metrics = {}, bool has_shards = false);
std::string epoch_csv_row(const EpochRecord& record, bool has_shards = false);

}  // namespace tandem
