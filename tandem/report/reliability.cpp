#include "tandem/report/reliability.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/check.h"

namespace tandem {

Reliability reliability(std::span<const float> probabilities, std::span<const std::int32_t> labels,
                        std::int64_t classes) {
  const auto width = static_cast<std::size_t>(classes);
  expect(probabilities.size() == labels.size() * width);
  Reliability result{.bins = std::vector<ReliabilityBin>(reliability_bins)};
  std::vector<double> confidence(result.bins.size()), correct(result.bins.size());
  const auto count = static_cast<double>(labels.size());
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span row = probabilities.subspan(i * width, width);
    const auto best = std::ranges::max_element(row);
    const auto own = static_cast<double>(row[static_cast<std::size_t>(labels[i])]);
    loss -= std::log(std::max(own, std::numeric_limits<double>::min()));
    const int bin = static_cast<int>(std::ceil(static_cast<double>(*best) * reliability_bins)) - 1;
    const auto at = static_cast<std::size_t>(std::clamp(bin, 0, reliability_bins - 1));
    ++result.bins[at].images;
    confidence[at] += static_cast<double>(*best);
    correct[at] += best - row.begin() == labels[i] ? 1 : 0;
  }
  double ece = 0;
  for (std::size_t i = 0; i < result.bins.size(); ++i) {
    ReliabilityBin& bin = result.bins[i];
    bin.low = static_cast<double>(i) / reliability_bins;
    bin.high = static_cast<double>(i + 1) / reliability_bins;
    if (bin.images == 0) continue;
    bin.confidence = confidence[i] / static_cast<double>(bin.images);
    bin.accuracy = correct[i] / static_cast<double>(bin.images);
    ece += std::abs(correct[i] - confidence[i]) / count;
  }
  if (labels.empty()) return result;
  result.ece = ece;
  result.loss = loss / count;
  return result;
}

}  // namespace tandem
