// C[i][j] = max(A[i][j], B[i][j]). One comparison for every twelve bytes moved: memory is all there is.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_max(const StudyOptions& options = {});

}  // namespace tandem
