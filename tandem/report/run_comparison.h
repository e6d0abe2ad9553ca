// Training runs side by side: the options that differ, the results, the curves on one plot, and epoch by
// epoch.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/report/training_report.h"
#include "tandem/text/table.h"

namespace tandem {

struct ComparedRun {
  std::string name;           // its folder
  std::vector<Fact> options;  // name and value, in the order of the run's configuration
  TrainingReport report;
  std::string data;  // a digest of what it was trained and validated on; empty: unknown
};

// Sentences about the runs. None says more than was measured: accuracies whose intervals overlap and times
// whose ranges overlap are not called different, and accuracies on different data are not compared.
std::vector<std::string> comparison_findings(std::span<const ComparedRun> runs);

std::string comparison_text(std::span<const ComparedRun> runs, const TextStyle& style);
std::string comparison_page(std::span<const ComparedRun> runs, const std::vector<Fact>& provenance);
// {"provenance": {…}, "differing_options": […], "findings": […],
//  "runs": [{"name", "options": {…}, "report": to_json_text(report)}, …]}
std::string comparison_json(std::span<const ComparedRun> runs, const std::vector<Fact>& provenance);

}  // namespace tandem
