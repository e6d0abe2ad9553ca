// Studies as JSON. One study is
//   {"study", "machine": {name: value, …}, "provenance": {"command", "version", "commit", "date", "host",
//   "load", "seed"}, "versions": {name: what it is, …}, "rows": [{"case", "version", "device", "median_ms",
//   "min_ms", "max_ms", "with_copies_ms", "speedup", "gb_per_s", "gflop_per_s", "share_of_peak", "agrees",
//   "max_error", "threads"}, …]}
// Absent and non-finite figures are left out. Several studies are {"studies": […]}.
// A file can be read again; findings, plots and introductions are not in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

std::string to_json_text(const StudyReport& report);

std::string to_json_text(std::span<const StudyReport> reports);

// One study or several. Throws Error, naming `name`, if the text is not one of to_json_text().
std::vector<StudyReport> parse_studies(std::string_view text, const std::string& name);

}  // namespace tandem
