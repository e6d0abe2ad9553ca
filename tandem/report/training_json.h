// The report of a training run as JSON, which `tandem compare` and other tools read:
//   {"title", "command", "facts": {name: value, …}, "provenance": {…}, "val_name", "test_name", "chosen_on",
//   "kept_epoch", "test_accuracy", "test_loss", "test_images", "total_seconds", "warnings": […],
//   "classes": […], "confusion": [[…], …], "epochs": [{"epoch", "train_loss", …, "metrics": {…}}, …],
//   "cross_validation": {"mean_accuracy", "accuracy_deviation", "folds": [{"fold", "accuracy", …}, …]},
//   "range_test": {"chosen", "rates", "losses"}, "curves", "calibration": decision_sections.h}
// Figures that were not measured are left out; pictures are only in report.html. Curves and calibration are
// not read again.
#pragma once

#include <string>
#include <string_view>

#include "tandem/report/training_report.h"

namespace tandem {

std::string to_json_text(const TrainingReport& report);

// Throws Error, naming `name`, if the text is not one of to_json_text().
TrainingReport parse_training_report(std::string_view text, const std::string& name);

}  // namespace tandem
