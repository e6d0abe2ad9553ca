// X·Xᵀ. As many multiply-adds as the size cubed on the size squared numbers: arithmetic is all there is, and
// half of it is saved by whoever notices that the result is symmetric.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_xxt(const StudyOptions& options = {});

}  // namespace tandem
