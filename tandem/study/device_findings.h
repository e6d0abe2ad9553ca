// Findings and plots of the devices study from its rows: where the GPU becomes faster, the gain from larger
// batches, and which engine ran.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

std::vector<std::string> device_findings(const std::vector<StudyRow>& rows);

// Speed-up and samples per second over the number of weights, then standard_plots().
std::vector<Plot> device_plots(const std::vector<StudyRow>& rows);

}  // namespace tandem
