// Findings and plots of the workers study from its rows: how augmentation scales, and what the bottleneck of
// training with it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

inline constexpr std::string_view loading_case = "augmentation alone";
std::string training_case(const std::string& device);  // "training on cpu"

// The versions are thread, process and, for training without augmentation, plain.
std::vector<std::string> worker_findings(const std::vector<StudyRow>& rows, int usable_cpus);

std::vector<Plot> worker_plots(const std::vector<StudyRow>& rows);

}  // namespace tandem
