#include "tandem/report/binary_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tandem/core/check.h"

namespace tandem {

BinaryCurves binary_curves(std::span<const double> scores, std::span<const std::uint8_t> is_positive) {
  expect(scores.size() == is_positive.size());
  BinaryCurves curves;
  for (const std::uint8_t positive : is_positive) ++(positive ? curves.positives : curves.negatives);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return scores[i]; });
  curves.points.push_back({.threshold = std::numeric_limits<double>::infinity()});
  const auto all_positives = static_cast<double>(curves.positives);
  const auto all_negatives = static_cast<double>(curves.negatives);
  double found = 0, wrong = 0, auc = 0, average_precision = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    ++(is_positive[order[k]] ? found : wrong);
    if (k + 1 < order.size() && scores[order[k + 1]] == scores[order[k]]) continue;
    const ThresholdPoint before = curves.points.back();
    const ThresholdPoint point{.threshold = scores[order[k]],
                               .true_positive_rate = found / all_positives,
                               .false_positive_rate = wrong / all_negatives,
                               .precision = found / (found + wrong)};
    auc += (point.false_positive_rate - before.false_positive_rate) *
           (point.true_positive_rate + before.true_positive_rate) / 2;
    average_precision += (point.true_positive_rate - before.true_positive_rate) * point.precision;
    curves.points.push_back(point);
  }
  if (curves.has_both_classes()) curves.auc = auc;
  if (curves.positives > 0) curves.average_precision = average_precision;
  return curves;
}

double youden_threshold(const BinaryCurves& curves) {
  expect(curves.has_both_classes());
  double best = -1, chosen = 0.5;
  for (std::size_t i = 0; i < curves.points.size(); ++i) {
    const ThresholdPoint& point = curves.points[i];
    const double high = std::min(point.threshold, 1.0);
    const double low = i + 1 < curves.points.size() ? curves.points[i + 1].threshold : 0;
    const double threshold = (high + low) / 2;
    const double j = point.true_positive_rate - point.false_positive_rate;
    constexpr double rounding = 1e-12;
    if (j < best - rounding) continue;
    if (j < best + rounding && std::abs(threshold - 0.5) >= std::abs(chosen - 0.5)) continue;
    best = std::max(best, j);
    chosen = threshold;
  }
  return chosen;
}

const ThresholdPoint& point_at(const BinaryCurves& curves, double threshold) {
  std::size_t i = 0;
  while (i + 1 < curves.points.size() && curves.points[i + 1].threshold >= threshold) ++i;
  return curves.points[i];
}

}  // namespace tandem
