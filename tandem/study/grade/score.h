// From what was measured to points: the curve over the time, and the points of a part.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// Points for speed as a share: all up to `full` times the reference's time, none from `zero` times on, and
// linear in the logarithm of the time between them.
struct SpeedCurve {
  double full = 1.2;
  double zero = 10;
  double max_spread = 0.15;  // of the reference's times, relative; above it, speed is not graded

  // 0 for a ratio that is not a positive number.
  double share(double ratio) const;
};

// The times of a case: student and reference took turns, so the times of both stem from the same minutes.
struct SpeedSample {
  std::vector<double> student_ms;
  std::vector<double> reference_ms;
};

struct SpeedResult {
  double student_ms = 0;
  double reference_ms = 0;
  double ratio = 0;   // student_ms / reference_ms
  double spread = 0;  // of the reference
};

// How sure the minimum of some times is: every fourth time is in one of four groups, and this is the
// difference between the largest and the smallest of the groups' minima, relative to the smallest.
double spread_of(const std::vector<double>& times);

// The ratio of the fastest runs. Another process can only add time, and it adds to some runs and not to
// others, so the minimum of many short runs is the statistic that a busy machine changes least. Needs a time
// of each.
SpeedResult speed_of(const SpeedSample& sample);

// Points of a part.
struct PartPoints {
  double correctness = 0;
  double speed = 0;
  double speed_not_graded = 0;  // the points that nobody can get because the machine was too noisy
};

struct PartCounts {
  int cases = 0;
  int correct = 0;
  bool all_timed_runs_correct = true;  // one wrong result while the clock ran costs all points for speed
};

// `weight` is split by `speed_share`. Points for correctness are in proportion to the correct cases, and so
// are those for speed, which are the mean over the timed cases: what is fast and wrong earns nothing.
PartPoints part_points(double weight, double speed_share, const SpeedCurve& curve, const PartCounts& counts,
                       const std::vector<SpeedResult>& timed);

}  // namespace tandem
