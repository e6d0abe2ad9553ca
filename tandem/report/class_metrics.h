// Per-class counts, precision and recall, computed from a confusion matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// part / whole; NaN when `whole` is 0.
double share_of(std::int64_t part, std::int64_t whole);

/// The figures of one class.
struct ClassMetrics {
  std::int64_t images = 0;     ///< that belong to the class
  std::int64_t predicted = 0;  ///< that were predicted as the class
  std::int64_t correct = 0;    ///< both
  double precision = 0;        ///< correct / predicted; NaN if none was predicted
  double recall = 0;           ///< correct / images; NaN if there are none
};

/// One entry per class of a confusion matrix (row-major counts by truth × prediction).
std::vector<ClassMetrics> class_metrics(std::span<const std::int64_t> confusion);

}  // namespace tandem
