// How augmentation scales with its workers, threads and processes: the loader alone, then beside a training
// that takes its images, and what holds that back.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_workers(const StudyOptions& options = {});

}  // namespace tandem
