// How training scales with ranks on this machine: the rate, what the exchange of gradients costs and how much
// of it the computation hides; and a model, fitted to that, of larger clusters.
#pragma once

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

StudyReport study_cluster(const StudyOptions& options = {});

}  // namespace tandem
