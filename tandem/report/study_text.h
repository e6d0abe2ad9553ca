// A study for the terminal: title, introduction, the table grouped by case, then the findings.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/text/table.h"

namespace tandem {

// Without the machine facts: the studies of one run share them (machine_text).
std::string study_text(const StudyReport& report, const TextStyle& style = {});

// The facts as one wrapped paragraph: "CPU Neoverse-V2 · cores 2 · …".
std::string machine_text(const std::vector<Fact>& machine, const TextStyle& style = {});

}  // namespace tandem
