// The section of a training page about a cross-validation.
#pragma once

#include "tandem/report/page.h"
#include "tandem/report/training_report.h"

namespace tandem {

// How the folds were made, what the kept model is, the accuracy of each fold as a plot, and a table.
PageSection folds_section(const TrainingReport& report);

}  // namespace tandem
