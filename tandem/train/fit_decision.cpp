#include "tandem/train/fit_decision.h"

#include <vector>

#include "tandem/core/check.h"
#include "tandem/train/metrics.h"
#include "tandem/train/temperature.h"

namespace tandem {

BinaryCurves evaluated_curves(const Evaluation& evaluation, std::span<const std::int32_t> labels,
                              LossKind loss) {
  expect(evaluation.classes == 2);
  const std::vector<float> shares = probabilities(evaluation.outputs, 2, loss);
  std::vector<double> scores;
  std::vector<std::uint8_t> is_positive;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    scores.push_back(static_cast<double>(shares[2 * i + 1]));
    is_positive.push_back(labels[i] == 1 ? 1 : 0);
  }
  return binary_curves(scores, is_positive);
}

Calibration measure_calibration(const Evaluation& raw, std::span<const std::int32_t> labels,
                                const Decision& decision) {
  const auto measured = [&](const Evaluation& evaluation) {
    return reliability(probabilities(evaluation.outputs, evaluation.classes, LossKind::cross_entropy), labels,
                       evaluation.classes);
  };
  return {.temperature = decision.temperature,
          .images = std::ssize(labels),
          .before = measured(raw),
          .after = measured(apply_decision(raw, labels, {.temperature = decision.temperature}))};
}

Evaluation apply_decision(Evaluation raw, std::span<const std::int32_t> labels, const Decision& decision,
                          LossKind loss) {
  if (decision.empty() || labels.empty()) return raw;
  for (float& output : raw.outputs) output = static_cast<float>(output / decision.temperature);
  const std::vector<float> shares = probabilities(raw.outputs, raw.classes, loss);
  const auto classes = static_cast<std::size_t>(raw.classes);
  for (std::size_t i = 0; i < labels.size(); ++i)
    raw.predictions[i] =
        static_cast<std::int32_t>(decision.choose(std::span(shares).subspan(i * classes, classes)));
  raw.accuracy = accuracy(labels, raw.predictions);
  if (decision.temperature != 1) raw.loss = reliability(shares, labels, raw.classes).loss;
  return raw;
}

Decision fit_decision(const Evaluation& raw, std::span<const std::int32_t> labels, bool calibrate,
                      const ThresholdRequest& threshold, LossKind loss) {
  check(!calibrate || loss != LossKind::mse,
        "[calibrate] expected a model with logits, got one with sigmoid outputs (loss mse)");
  check(threshold.empty() || raw.classes == 2,
        "[calibrate] expected a model with two classes for a threshold, got {}", raw.classes);
  Decision decision;
  if (calibrate) decision.temperature = fit_temperature(raw.outputs, labels, raw.classes);
  if (!threshold.automatic) {
    decision.threshold = threshold.value;
    return decision;
  }
  const Evaluation calibrated = apply_decision(raw, labels, decision, loss);
  const BinaryCurves curves = evaluated_curves(calibrated, labels, loss);
  check(curves.has_both_classes(),
        "[calibrate] expected images of both classes to choose a threshold, got {} and {}", curves.negatives,
        curves.positives);
  decision.threshold = youden_threshold(curves);
  return decision;
}

}  // namespace tandem
