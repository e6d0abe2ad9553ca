// Findings and plots of the devices study from its rows: where the GPU becomes faster, the gain from larger
// batches, the gain from threads, and which engine ran.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

// `cpus` is the number of CPUs the threads had: more threads are oversubscribed. Where threads were swept,
// the CPU is compared with other devices by its fastest row.
std::vector<std::string> device_findings(const std::vector<StudyRow>& rows, int cpus);

// Speed-up and samples per second over the number of weights, then standard_plots().
std::vector<Plot> device_plots(const std::vector<StudyRow>& rows, int cpus);

}  // namespace tandem
