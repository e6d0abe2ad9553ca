#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tandem/study/grade/score.h"

namespace tandem {
namespace {

TEST(SpeedCurve, UpToFull_IsOne) {
  const SpeedCurve curve;
  for (const double ratio : {0.001, 0.5, 1.0, 1.2}) EXPECT_DOUBLE_EQ(curve.share(ratio), 1) << ratio;
}

TEST(SpeedCurve, FromZeroOn_IsZero) {
  const SpeedCurve curve;
  for (const double ratio : {10.0, 11.0, 1e9}) EXPECT_DOUBLE_EQ(curve.share(ratio), 0) << ratio;
}

TEST(SpeedCurve, Between_IsLinearInTheLogarithm) {
  const SpeedCurve curve;
  EXPECT_NEAR(curve.share(std::sqrt(1.2 * 10)), 0.5, 1e-12);
  EXPECT_NEAR(curve.share(2), std::log(5.0) / std::log(10 / 1.2), 1e-12);
  EXPECT_NEAR((SpeedCurve{.full = 1, .zero = 4}.share(2)), 0.5, 1e-12);
}

TEST(SpeedCurve, RatioThatIsNoTime_EarnsNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double ratio : {0.0, -1.0, std::nan(""), infinity})
    EXPECT_EQ(SpeedCurve{}.share(ratio), 0) << ratio;
}

TEST(Speed, BusyMachine_MinimaCount) {
  // Every other run was disturbed.
  const SpeedResult result =
      speed_of({.student_ms = {4, 9, 4, 8, 4, 4, 7, 4}, .reference_ms = {2, 5, 2, 2, 9, 2, 2, 4}});
  EXPECT_DOUBLE_EQ(result.ratio, 2);
  EXPECT_DOUBLE_EQ(result.reference_ms, 2);
  EXPECT_DOUBLE_EQ(result.spread, 0);
}

TEST(Speed, MinimumThatIsAnException_HasASpread) {
  const SpeedResult result = speed_of({.student_ms = {4}, .reference_ms = {3, 3, 3, 3, 3, 2, 3, 3}});
  EXPECT_DOUBLE_EQ(result.spread, 0.5);
}

TEST(Speed, MachineThatBecomesSlower_HasNoSpread) {
  // The submission was measured in turns, so it had the fast times, too.
  EXPECT_DOUBLE_EQ((speed_of({.student_ms = {4}, .reference_ms = {2, 2, 2, 2, 3, 3, 3, 3}}).spread), 0);
}

TEST(Speed, SingleTime_HasNoSpread) {
  EXPECT_DOUBLE_EQ((speed_of({.student_ms = {3}, .reference_ms = {2}}).spread), 0);
}

TEST(PartPoints, AllCorrectAndFast_AreTheWeight) {
  const PartPoints points = part_points(20, 0.5, {}, {.cases = 4, .correct = 4}, {{.ratio = 1}});
  EXPECT_DOUBLE_EQ(points.correctness, 10);
  EXPECT_DOUBLE_EQ(points.speed, 10);
}

TEST(PartPoints, WrongCases_CostCorrectnessAndSpeed) {
  const PartPoints points = part_points(20, 0.5, {}, {.cases = 4, .correct = 1}, {{.ratio = 1}});
  EXPECT_DOUBLE_EQ(points.correctness, 2.5);
  EXPECT_DOUBLE_EQ(points.speed, 2.5);
}

TEST(PartPoints, WrongResultWhileTimed_CostsAllSpeed) {
  const PartPoints points =
      part_points(20, 0.5, {}, {.cases = 4, .correct = 3, .all_timed_runs_correct = false}, {{.ratio = 0.1}});
  EXPECT_DOUBLE_EQ(points.correctness, 7.5);
  EXPECT_DOUBLE_EQ(points.speed, 0);
  EXPECT_DOUBLE_EQ(points.speed_not_graded, 0);
}

TEST(PartPoints, NoisyReference_IsNotGraded) {
  const PartPoints points = part_points(20, 0.5, {}, {.cases = 4, .correct = 4},
                                        {{.ratio = 1, .spread = 0.16}, {.ratio = 1, .spread = 0.15}});
  EXPECT_DOUBLE_EQ(points.correctness, 10);
  EXPECT_DOUBLE_EQ(points.speed, 5);
  EXPECT_DOUBLE_EQ(points.speed_not_graded, 5);
}

TEST(PartPoints, SeveralTimedCases_AreAveraged) {
  const SpeedCurve curve{.full = 1, .zero = 4};
  const PartPoints points =
      part_points(10, 1, curve, {.cases = 2, .correct = 2}, {{.ratio = 1}, {.ratio = 2}});
  EXPECT_NEAR(points.speed, 7.5, 1e-12);
}

}  // namespace
}  // namespace tandem
