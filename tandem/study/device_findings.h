// What the rows of the study of devices say: where a GPU begins to win, what large batches buy, which engine
// ran; and the plots that show it. From the rows alone.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

std::vector<std::string> device_findings(const std::vector<StudyRow>& rows);

// The speed-up over the number of weights, where it crosses 1; samples a second; then standard_plots().
std::vector<Plot> device_plots(const std::vector<StudyRow>& rows);

}  // namespace tandem
