// Fits temperature and threshold of a model to labeled images, and evaluates with them.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/nn/loss.h"
#include "tandem/report/binary_curves.h"
#include "tandem/report/calibration.h"
#include "tandem/train/decision.h"
#include "tandem/train/evaluate.h"

namespace tandem {

// An evaluation of raw outputs as a model with this decision gives it: outputs divided by the temperature,
// their loss, predictions and accuracy.
Evaluation apply_decision(Evaluation raw, std::span<const std::int32_t> labels, const Decision& decision,
                          LossKind loss = LossKind::cross_entropy);

// Fits what is asked for to an evaluation of raw outputs: the temperature first, then the threshold to the
// calibrated probabilities. Throws Error for a threshold without two classes, or without images of both.
Decision fit_decision(const Evaluation& raw, std::span<const std::int32_t> labels, bool calibrate,
                      const ThresholdRequest& threshold, LossKind loss = LossKind::cross_entropy);

// The curves of two classes, of which the second is the positive one.
BinaryCurves evaluated_curves(const Evaluation& evaluation, std::span<const std::int32_t> labels,
                              LossKind loss);

// What the temperature of a decision does to the probabilities of an evaluation of raw outputs. What it was
// fitted on is the caller's to say.
Calibration measure_calibration(const Evaluation& raw, std::span<const std::int32_t> labels,
                                const Decision& decision);

}  // namespace tandem
