// The sections of a page about probabilities: curves of two classes, and calibration.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tandem/report/binary_curves.h"
#include "tandem/report/calibration.h"
#include "tandem/report/page.h"

namespace tandem {

// ROC and precision-recall curves with their areas, and what the threshold gives. `test_name` names the
// images.
PageSection curves_section(const BinaryCurves& curves, const std::string& test_name);

// Reliability before and after, with both calibration errors, and which images fitted and measured it.
PageSection calibration_section(const Calibration& calibration, const std::string& test_name);

// {"positive", "auc", "average_precision", "threshold", "points": [[threshold, false-positive rate,
// true-positive rate, precision], …]}; figures that were not measured are null.
nlohmann::ordered_json curves_json(const BinaryCurves& curves);
// {"temperature", "fitted_on", "same_images", "ece_before", "ece", "loss_before", "loss", "bins": […]}
nlohmann::ordered_json calibration_json(const Calibration& calibration);

}  // namespace tandem
