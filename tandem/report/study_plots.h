// The standard plots of a study, made from its rows: time by version, share of the peak, cost of the copies
// and scaling with threads. Plots without data are left out.
#pragma once

#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

// `cpus` is the number of CPUs the threads had; more threads are marked as oversubscribed.
std::vector<Plot> standard_plots(const std::vector<StudyRow>& rows, int cpus);

// Marks what is beyond this number of CPUs, in a plot over threads or workers.
PlotLimit cpu_limit(int cpus);

}  // namespace tandem
