// The same studies of two or more machines, commits or builds side by side.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/text/table.h"

namespace tandem {

// One file of `tandem study --json`.
struct ComparedStudies {
  std::string name;
  std::vector<StudyReport> studies;
};

// The measurements that at least two of them have. Ratios are speeds relative to the first, A; where the
// spreads overlap, none is given.
std::string study_comparison_text(std::span<const ComparedStudies> files, const TextStyle& style);
std::string study_comparison_page(std::span<const ComparedStudies> files,
                                  const std::vector<Fact>& provenance);
// {"provenance": {…}, "files": [name, …], "findings": […], "rows": [{"study", "case", "version", "device",
//  "median_ms": [number or null, …], "speed": [ratio to the first, or null where spreads overlap, …]}, …]}
std::string study_comparison_json(std::span<const ComparedStudies> files,
                                  const std::vector<Fact>& provenance);

}  // namespace tandem
