// The plots every study wants, drawn from its rows alone: time by version, share of the peak, what the copies
// cost, and how it scales with threads. A plot for which there is nothing to show is left out.
#pragma once

#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

std::vector<Plot> standard_plots(const std::vector<StudyRow>& rows);

}  // namespace tandem
