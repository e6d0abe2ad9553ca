// 2-D correlation: every pixel becomes the weighted sum of its neighbors. Small kernels are memory-bound,
// large ones compute-bound; the study shows where the transition is.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_correlation(const StudyOptions& options = {});

}  // namespace tandem
