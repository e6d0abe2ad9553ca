// The same training on every device, for networks from tiny to large and for several batch sizes. Shows where
// the GPU becomes faster and what copying the data set costs.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_devices(const StudyOptions& options = {});

}  // namespace tandem
