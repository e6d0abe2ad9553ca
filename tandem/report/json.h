// Studies as JSON. One study is
//   {"study", "machine": {name: value, …}, "provenance": {"command", "version", "commit", "date", "host",
//   "load", "seed"}, "versions": {name: what it is, …}, "rows": [{"case", "version", "device", "median_ms",
//   "min_ms", "max_ms", "with_copies_ms", "speedup", "gb_per_s", "gflop_per_s", "share_of_peak", "agrees",
//   "max_error", "threads"}, …]}
// Absent and non-finite figures are left out. Several studies are {"studies": […]}.
#pragma once

#include <span>
#include <string>

#include "tandem/report/study_report.h"

namespace tandem {

std::string to_json_text(const StudyReport& report);

std::string to_json_text(std::span<const StudyReport> reports);

}  // namespace tandem
