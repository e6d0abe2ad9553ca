// A training run as one HTML file that works offline: how good the model is, how it got there, what it
// confuses and its worst mistakes as pictures.
#pragma once

#include <string>

#include "tandem/report/training_report.h"

namespace tandem {

// The confusion matrix must be empty or have classes × classes counts.
std::string training_page(const TrainingReport& report);

}  // namespace tandem
