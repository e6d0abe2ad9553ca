// A study for the terminal: title, introduction, the table grouped by case, then what was found, in
// sentences.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/report/table.h"

namespace tandem {

// The machine is not part of it: several studies of one run share it (machine_text).
std::string study_text(const StudyReport& report, const TextStyle& style = {});

// The facts in one wrapped paragraph: "CPU Neoverse-V2 · cores 2 · …".
std::string machine_text(const std::vector<Fact>& machine, const TextStyle& style = {});

}  // namespace tandem
