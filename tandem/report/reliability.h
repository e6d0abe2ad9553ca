// How well the probabilities of a classifier agree with how often it is right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/report/epoch_record.h"

namespace tandem {

/// Images whose predicted class has a probability above `low` and up to `high`.
struct ReliabilityBin {
  double low = 0, high = 1;
  std::int64_t images = 0;
  double confidence = not_measured;  ///< their mean probability
  double accuracy = not_measured;
};

struct Reliability {
  std::vector<ReliabilityBin> bins;  ///< of equal width
  /// The expected calibration error: the mean over images of |accuracy − confidence| of their bin (Naeini et
  /// al. 2015).
  double ece = not_measured;
  double loss = not_measured;  ///< mean negative log-likelihood
};

inline constexpr int reliability_bins = 15;  // as Guo et al. 2017

/// `probabilities` is images × classes, row-major; the predicted class is the most probable one.
Reliability reliability(std::span<const float> probabilities, std::span<const std::int32_t> labels,
                        std::int64_t classes);

}  // namespace tandem
