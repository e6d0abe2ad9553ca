#include "tandem/study/grade/score.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"

namespace tandem {

double SpeedCurve::share(double ratio) const {
  if (!(ratio > 0) || !std::isfinite(ratio)) return 0;
  return std::clamp(std::log(zero / ratio) / std::log(zero / full), 0.0, 1.0);
}

SpeedResult speed_of(const SpeedSample& sample) {
  expect(!sample.student_ms.empty() && !sample.reference_ms.empty());
  constexpr std::size_t blocks = 4;
  const std::vector<double>& all = sample.reference_ms;
  const std::size_t count = std::min(blocks, all.size());
  std::vector<double> minima;
  for (std::size_t i = 0; i < count; ++i)
    minima.push_back(
        *std::min_element(all.begin() + static_cast<std::ptrdiff_t>(i * all.size() / count),
                          all.begin() + static_cast<std::ptrdiff_t>((i + 1) * all.size() / count)));
  const auto [low, high] = std::minmax_element(minima.begin(), minima.end());
  const double student = *std::min_element(sample.student_ms.begin(), sample.student_ms.end());
  return {
      .student_ms = student, .reference_ms = *low, .ratio = student / *low, .spread = (*high - *low) / *low};
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
