// Counting.
#include "tandem/train/metrics.h"

#include <cmath>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

std::size_t side_of(std::span<const std::int64_t> confusion) {
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  expect(side * side == confusion.size());
  return side;
}

}  // namespace

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
  std::int64_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += labels[i] == predictions[i];
  return share(right, static_cast<std::int64_t>(labels.size()));
}

double accuracy(std::span<const std::int64_t> confusion) {
  std::int64_t right = 0, images = 0;
  for (const ClassMetrics& metrics : class_metrics(confusion)) {
    right += metrics.right;
    images += metrics.images;
  }
  return share(right, images);
}

double top_k_accuracy(std::span<const float> logits, std::span<const std::int32_t> labels, int k) {
  expect(k >= 1);
  if (labels.empty()) return share(0, 0);
  expect(logits.size() % labels.size() == 0);
  const std::size_t classes = logits.size() / labels.size();
  std::int64_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    expect(labels[i] >= 0 && label < classes);
    if (std::isnan(row[label])) continue;
    int larger = 0;
    for (std::size_t c = 0; c < classes; ++c)
      larger += row[c] > row[label] || (row[c] == row[label] && c < label);
    right += larger < k;
  }
  return share(right, static_cast<std::int64_t>(labels.size()));
}

std::vector<ClassMetrics> class_metrics(std::span<const std::int64_t> confusion) {
  const std::size_t classes = side_of(confusion);
  std::vector<ClassMetrics> all(classes);
  for (std::size_t truth = 0; truth < classes; ++truth)
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const std::int64_t count = confusion[truth * classes + predicted];
      all[truth].images += count;
      all[predicted].predicted += count;
      if (truth == predicted) all[truth].right = count;
    }
  for (ClassMetrics& metrics : all) {
    metrics.precision = share(metrics.right, metrics.predicted);
    metrics.recall = share(metrics.right, metrics.images);
  }
  return all;
}

}  // namespace tandem
