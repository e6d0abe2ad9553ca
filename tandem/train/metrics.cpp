#include "tandem/train/metrics.h"

#include <cmath>

#include "tandem/core/error.h"

namespace tandem {

std::vector<std::int64_t> confusion_matrix(std::span<const std::int32_t> labels,
                                           std::span<const std::int32_t> predictions, std::int64_t classes) {
  expect(labels.size() == predictions.size() && classes >= 0);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes * classes));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t truth = labels[i], predicted = predictions[i];
    expect(truth >= 0 && truth < classes && predicted >= 0 && predicted < classes);
    ++counts[static_cast<std::size_t>(truth * classes + predicted)];
  }
  return counts;
}

double accuracy(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions) {
  expect(labels.size() == predictions.size());
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) correct += labels[i] == predictions[i];
  return share_of(correct, static_cast<std::int64_t>(labels.size()));
}

double accuracy(std::span<const std::int64_t> confusion) {
  std::int64_t correct = 0, images = 0;
  for (const ClassMetrics& metrics : class_metrics(confusion)) {
    correct += metrics.correct;
    images += metrics.images;
  }
  return share_of(correct, images);
}

double top_k_accuracy(std::span<const float> logits, std::span<const std::int32_t> labels, int k) {
  expect(k >= 1);
  if (labels.empty()) return share_of(0, 0);
  expect(logits.size() % labels.size() == 0);
  const std::size_t classes = logits.size() / labels.size();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    expect(labels[i] >= 0 && label < classes);
    if (std::isnan(row[label])) continue;
    int larger = 0;
    for (std::size_t c = 0; c < classes; ++c)
      larger += row[c] > row[label] || (row[c] == row[label] && c < label);
    correct += larger < k;
  }
  return share_of(correct, static_cast<std::int64_t>(labels.size()));
}

}  // namespace tandem
