// ROC and precision-recall curves of a classifier with two classes, by the definitions of scikit-learn.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/report/epoch_record.h"

namespace tandem {

/// What is measured when an image counts as positive if its score is at least `threshold`.
struct ThresholdPoint {
  double threshold = 0;
  double true_positive_rate = 0;  ///< recall: the share of the positive images that count as positive
  double false_positive_rate = 0;
  double precision = 1;
};

struct BinaryCurves {
  std::string positive, negative;  ///< names of classes
  std::int64_t positives = 0, negatives = 0;
  /// One per distinct score, the highest first, after a point above all scores, at which nothing is positive.
  std::vector<ThresholdPoint> points;
  double auc = not_measured;                ///< area under the ROC curve, by trapezoids
  double average_precision = not_measured;  ///< Σ (recall − previous recall) · precision
  double threshold = not_measured;          ///< the model's own, from which an image is positive
  std::string note;                         ///< a sentence about how it was chosen

  bool has_both_classes() const { return positives > 0 && negatives > 0; }
};

/// Figures that need a class without images are NaN. `is_positive` has one value per score, not 0: positive.
BinaryCurves binary_curves(std::span<const double> scores, std::span<const std::uint8_t> is_positive);

/// The threshold with the largest true-positive rate minus false-positive rate (Youden's J), which weights
/// both classes alike, whatever their numbers. It lies midway between two scores; of equal ones the nearest
/// to 0.5 is chosen. Needs images of both classes.
double youden_threshold(const BinaryCurves& curves);

/// The point of that threshold.
const ThresholdPoint& point_at(const BinaryCurves& curves, double threshold);

}  // namespace tandem
