// Findings about measured rows: the gain from parallelism, the GPU, and the cost of the copies.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

// About the case with the most measured rows; the last of several such cases.
std::vector<std::string> general_findings(const std::vector<StudyRow>& rows);

// The fastest correct row of that case and version; null if there is none.
const StudyRow* find_row(const std::vector<StudyRow>& rows, const std::string& case_name,
                         const std::string& version);

}  // namespace tandem
