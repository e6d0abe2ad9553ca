// What the rows of the study of workers say: how far augmentation scales, and what bounds a training that is
// fed by it; and the plots that show it. From the rows alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"

namespace tandem {

inline constexpr std::string_view loading_case = "augmentation alone";
std::string training_case(const std::string& device);  // "training on cpu"

// Versions are thread, process and, for a training without augmentation, plain.
std::vector<std::string> worker_findings(const std::vector<StudyRow>& rows, int usable_cpus);

std::vector<Plot> worker_plots(const std::vector<StudyRow>& rows);

}  // namespace tandem
