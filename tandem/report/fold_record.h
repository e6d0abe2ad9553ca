// What was measured in one fold of a cross-validation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/report/epoch_record.h"

namespace tandem {

/// A model that was trained on the images of the other folds, and its figures on the images of this one.
struct FoldRecord {
  int fold = 0;  ///< from 1
  int folds = 0;
  std::int64_t training_images = 0;  ///< of the other folds
  std::int64_t images = 0;           ///< of this fold
  std::int64_t correct = 0;
  double loss = not_measured;  ///< mean over the images of this fold
  double seconds = not_measured;

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
};

/// The mean of the folds' accuracies, and their standard deviation (that of a sample: divided by folds − 1).
/// The deviation tells how much a figure of one split depends on chance; it is no error of the mean, because
/// the folds share training images.
struct FoldSummary {
  double mean = not_measured;
  double deviation = not_measured;
};
FoldSummary summarize(std::span<const FoldRecord> folds);
/// "95.25 ± 2.10 %"
std::string format_summary(const FoldSummary& summary);

}  // namespace tandem
