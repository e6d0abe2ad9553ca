// Sentences about measured rows: what parallelism bought, what the GPU did, what the copies cost.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

// About the case with the most rows that were measured, the last of them where several are alike.
std::vector<std::string> general_findings(const std::vector<StudyRow>& rows);

// The row of that case and version; null where there is none.
const StudyRow* find_row(const std::vector<StudyRow>& rows, const std::string& case_name,
                         const std::string& version);

}  // namespace tandem
