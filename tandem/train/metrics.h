// Metrics of predictions, on the host. Labels and predictions are class indices from 0; one outside
// [0, classes) is an InternalError.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/report/class_metrics.h"

namespace tandem {

/// Counts of images by truth × prediction, row-major. Precision and recall: class_metrics() of it.
std::vector<std::int64_t> confusion_matrix(std::span<const std::int32_t> labels,
                                           std::span<const std::int32_t> predictions, std::int64_t classes);

/// The fraction of correct predictions, from 0 to 1; NaN without images.
double accuracy(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions);
/// The same from a confusion matrix.
double accuracy(std::span<const std::int64_t> confusion);

/// The fraction of rows whose label is among the row's k largest logits; NaN without rows. Ties are broken in
/// favor of the lower class index, so that k = 1 is the accuracy of argmax. A label whose logit is NaN does
/// not count.
double top_k_accuracy(std::span<const float> logits, std::span<const std::int32_t> labels, int k);

}  // namespace tandem
