// Images whose features do not fit their label, or no other image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/train/feature_rows.h"

namespace tandem {

// Images with their labels, from 0 to classes − 1, or −1 for none. Images with the same copy number show the
// same picture.
struct LabeledFeatures {
  const Features& x;
  std::span<const std::int32_t> labels;
  std::span<const std::int64_t> copies;
  std::int64_t classes = 0;
};

struct LabelSuspect {
  std::int64_t row = 0;
  std::int32_t suggested = 0;  // class
  double label_probability = 0, suggested_probability = 0;
};

struct LabelCheck {
  int folds = 0;                       // 0: fewer than two classes have an image for each fold
  double accuracy = 0;                 // share of the labels that are predicted
  std::vector<LabelSuspect> suspects;  // by the difference of the two probabilities, largest first
};

inline constexpr int label_folds = 5;

// The labels of each fold are predicted by logistic regression on at most 20,000 images of the other folds;
// copies are in one fold. A label is suspect if another class is predicted with at least 0.7, or the mean
// probability that images of that class have for it if that is less (Northcutt, Jiang and Chuang 2021).
// Classes with fewer images than folds take no part.
LabelCheck check_labels(const LabeledFeatures& images);

struct FeatureOutlier {
  std::int64_t row = 0;
  double distance = 0;  // in medians of all
};

// Images whose mean distance to their five nearest neighbors is far above that of the others: five median
// deviations above the median. Copies are no neighbors. Neighbors are searched among at most 2,048 images.
// Farthest first.
std::vector<FeatureOutlier> find_outliers(const LabeledFeatures& images);

}  // namespace tandem
