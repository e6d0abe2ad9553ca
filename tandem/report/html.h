// Studies as one HTML file that works offline: for each its introduction, what was found, plots and the
// table.
#pragma once

#include <span>
#include <string>

#include "tandem/report/study_report.h"

namespace tandem {

// The header shows the first study's machine; a study made on another one shows its own.
std::string html_page(std::span<const StudyReport> reports, const std::string& title);

}  // namespace tandem
