// Timing counted, not timed: how often the work runs, and that the figures are in order.
#include "tandem/study/measure.h"

#include <gtest/gtest.h>

#include <vector>

#include "tandem/study/peaks.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

class MeasureTest : public testing::TestWithParam<Device> {};

TEST_P(MeasureTest, WarmsUpThenRepeatsAndCounts) {
  std::vector<int> turns;
  const Timing timing = measure(GetParam(), [&](int turn) { turns.push_back(turn); },
                                {.budget_ms = 1e6, .least = 3, .most = 7});
  EXPECT_GE(turns.size(), 8u);  // seven repetitions and at least one before them
  for (std::size_t i = 0; i < turns.size(); ++i) EXPECT_EQ(turns[i], static_cast<int>(i));
  EXPECT_GE(timing.min_ms, 0);
  EXPECT_LE(timing.min_ms, timing.median_ms);
  EXPECT_LE(timing.median_ms, timing.max_ms);
}

TEST_P(MeasureTest, NoBudgetMeansTheLeastRepetitions) {
  int runs = 0;
  measure_wall(GetParam(), [&](int) { ++runs; }, {.budget_ms = 0, .least = 3, .most = 7});
  EXPECT_EQ(runs, 1 + 3);
}

TEST_P(MeasureTest, PeaksArePositiveAndMeasuredOnce) {
  const double rate = copy_gb_per_s(GetParam(), 4096);
  EXPECT_GT(rate, 0);
  EXPECT_EQ(copy_gb_per_s(GetParam(), 4096), rate);
  EXPECT_GT(copy_gb_per_s(GetParam(), 1), 0);
  const double product = product_gflop_per_s(GetParam(), Arithmetics::f32);
  EXPECT_GT(product, 0);
  EXPECT_EQ(product_gflop_per_s(GetParam(), Arithmetics::f32), product);
}

INSTANTIATE_TEST_SUITE_P(Devices, MeasureTest, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
