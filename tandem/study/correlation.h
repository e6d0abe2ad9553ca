// every pixel becomes the weighted sum of its neighbours. Small kernels are bound by memory, larger ones by
// arithmetic: the study shows where one turns into the other.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_correlation(const StudyOptions& options = {});

}  // namespace tandem
