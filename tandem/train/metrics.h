// How good predictions are, on the host: plain functions of labels, predictions and logits. Labels and
// predictions number classes from 0 and lie in range; whoever made them has checked that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// Counts by truth × prediction, row-major.
std::vector<std::int64_t> confusion_matrix(std::span<const std::int32_t> labels,
                                           std::span<const std::int32_t> predictions, std::int64_t classes);

// Shares of 1; NaN when there is nothing to count.
double accuracy(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions);
double accuracy(std::span<const std::int64_t> confusion);

// The share of rows whose label is among the k largest of the row's logits. Of equal logits the earlier
// counts as larger, so that k = 1 is the accuracy of an argmax; a label whose logit is NaN is never among
// them.
double top_k_accuracy(std::span<const float> logits, std::span<const std::int32_t> labels, int k);

struct ClassMetrics {
  std::int64_t images = 0;     // that belong to the class
  std::int64_t predicted = 0;  // that were given the class
  std::int64_t right = 0;
  double precision = 0;  // right / predicted, NaN when none was
  double recall = 0;     // right / images, NaN when there is none
};

std::vector<ClassMetrics> class_metrics(std::span<const std::int64_t> confusion);

}  // namespace tandem
