// Findings about measured rows: the gain from parallelism, the GPU, and the cost of the copies.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

// About the case with the most measured rows; the last of several such cases. `cpus` is the number of CPUs
// the threads had: more threads are oversubscribed.
std::vector<std::string> general_findings(const std::vector<StudyRow>& rows, int cpus);

}  // namespace tandem
