#include "tandem/study/grade/score.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"

namespace tandem {

double SpeedCurve::share(double ratio) const {
  if (!(ratio > 0) || !std::isfinite(ratio)) return 0;
  return std::clamp(std::log(zero / ratio) / std::log(zero / full), 0.0, 1.0);
}

double spread_of(const std::vector<double>& times) {
  expect(!times.empty());
  constexpr std::size_t groups = 4;
  std::vector<double> minima(times.begin(),
                             times.begin() + static_cast<std::ptrdiff_t>(std::min(groups, times.size())));
  for (std::size_t i = minima.size(); i < times.size(); ++i)
    minima[i % groups] = std::min(minima[i % groups], times[i]);
  const auto [low, high] = std::minmax_element(minima.begin(), minima.end());
  return (*high - *low) / *low;
}

SpeedResult speed_of(const SpeedSample& sample) {
  expect(!sample.student_ms.empty() && !sample.reference_ms.empty());
  const double student = std::ranges::min(sample.student_ms),
               reference = std::ranges::min(sample.reference_ms);
  return {.student_ms = student,
          .reference_ms = reference,
          .ratio = student / reference,
          .spread = spread_of(sample.reference_ms)};
}

PartPoints part_points(double weight, double speed_share, const SpeedCurve& curve, const PartCounts& counts,
                       const std::vector<SpeedResult>& timed) {
  expect(counts.cases > 0 && counts.correct <= counts.cases);
  const double correct = static_cast<double>(counts.correct) / counts.cases;
  const double for_speed = weight * speed_share;
  PartPoints points{.correctness = (weight - for_speed) * correct};
  if (!counts.all_timed_runs_correct || counts.correct == 0) return points;
  for (const SpeedResult& one : timed) {
    const double each = for_speed / static_cast<double>(timed.size());
    if (one.spread > curve.max_spread)
      points.speed_not_graded += each;
    else
      points.speed += each * correct * curve.share(one.ratio);
  }
  return points;
}

}  // namespace tandem
