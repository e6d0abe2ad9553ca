// Element-wise maximum C[i][j] = max(A[i][j], B[i][j]). One comparison per twelve bytes moved: memory-bound.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_max(const StudyOptions& options = {});

}  // namespace tandem
