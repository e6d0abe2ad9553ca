// A training run as one HTML file that works offline: accuracy, training curves, confusion matrix and the
// worst mistakes as images.
#pragma once

#include <string>

#include "tandem/report/training_report.h"

namespace tandem {

// Requires the confusion matrix to be empty or to have classes × classes counts.
std::string training_page(const TrainingReport& report);

}  // namespace tandem
