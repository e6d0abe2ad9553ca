// X·Xᵀ. O(n³) multiply-adds on O(n²) values: compute-bound. The result is symmetric, which saves half the
// work.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_xxt(const StudyOptions& options = {});

}  // namespace tandem
