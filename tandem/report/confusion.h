// What a confusion matrix says: figures per class, and its wrong cells, the most frequent first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/report/class_metrics.h"

namespace tandem {

// Pages show a matrix up to this number of classes, and a list of the most frequent confusions above it.
inline constexpr std::size_t max_matrix_classes = 30, max_listed_confusions = 30;

struct ClassFigures : ClassMetrics {
  std::size_t confused_with = 0;  // the most frequent wrong prediction
  std::int64_t confused = 0;
};

// A wrong cell that is not empty.
struct ConfusedPair {
  std::size_t truth = 0, predicted = 0;
  std::int64_t count = 0;
};

struct Confusion {
  std::vector<ClassFigures> classes;
  std::vector<ConfusedPair> pairs;  // by count, then by share of the true class, highest first
  std::int64_t images = 0, correct = 0;
  double worst_share = 0;  // the largest share of a class predicted as one wrong class

  // Of the true class; NaN if it has no images.
  double share(const ConfusedPair& pair) const { return share_of(pair.count, classes[pair.truth].images); }
};

// `counts` by truth × prediction.
Confusion read_confusion(std::span<const std::int64_t> counts);

}  // namespace tandem
