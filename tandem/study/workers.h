// How augmentation scales with worker threads and processes: the loader alone, then while training on its
// images, with the bottleneck.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_workers(const StudyOptions& options = {});

}  // namespace tandem
