// Findings and plots of the workers study from its rows: how augmentation scales, and what the bottleneck of
// training with it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

inline constexpr std::string_view loading_case = "augmentation alone";
// "training on cpu" or, where the trainer's threads were swept, "training on cpu by 2 threads".
std::string training_case(const std::string& device, std::optional<int> threads = {});

// The versions are thread, process and, for training without augmentation, plain.
std::vector<std::string> worker_findings(const std::vector<StudyRow>& rows, int usable_cpus);

// More workers than CPUs are marked.
std::vector<Plot> worker_plots(const std::vector<StudyRow>& rows, int usable_cpus);

}  // namespace tandem
