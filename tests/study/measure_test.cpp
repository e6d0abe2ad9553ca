// Counts how often the work runs and checks the order of the figures. A spin bounds the shortest time from
// below.
#include "tandem/study/measure.h"

#include <gtest/gtest.h>

#include <vector>

#include "tandem/core/clock.h"
#include "tandem/study/peaks.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

class MeasureTest : public testing::TestWithParam<Device> {};

TEST_P(MeasureTest, Measure_WarmsUpThenRepeatsAndCounts) {
  std::vector<int> calls;
  const auto work = [&](int call) {
    calls.push_back(call);
    for (const Stopwatch watch; watch.elapsed_ms() < 1;) {  // a spin: its time is known from below
    }
  };
  const Timing timing =
      measure(GetParam(), work, {.budget_ms = 1e6, .min_repetitions = 3, .max_repetitions = 7});
  EXPECT_GE(calls.size(), 8u);  // seven repetitions and at least one before them
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], static_cast<int>(i));
  // The CPU's own spin; a GPU may reach the first event only when the spin is over.
  if (!GetParam().is_cuda()) {
    EXPECT_GE(timing.min_ms, 1);
  }
  EXPECT_LE(timing.min_ms, timing.median_ms);
  EXPECT_LE(timing.median_ms, timing.max_ms);
}

TEST_P(MeasureTest, ZeroBudget_RunsMinRepetitions) {
  int runs = 0;
  measure_wall(GetParam(), [&](int) { ++runs; },
               {.budget_ms = 0, .min_repetitions = 3, .max_repetitions = 7});
  EXPECT_EQ(runs, 1 + 3);
}

TEST_P(MeasureTest, Peaks_ArePositiveAndCached) {
  const double rate = copy_gb_per_s(GetParam(), 4096);
  EXPECT_GT(rate, 0);
  EXPECT_EQ(copy_gb_per_s(GetParam(), 4096), rate);
  EXPECT_GT(copy_gb_per_s(GetParam(), 1), 0);
  const double product = matmul_gflop_per_s(GetParam(), PeakPrecision::f32);
  EXPECT_GT(product, 0);
  EXPECT_EQ(matmul_gflop_per_s(GetParam(), PeakPrecision::f32), product);
}

TEST(Timing, MedianOfEvenCount_IsMeanOfTheTwoInTheMiddle) {
  const Timing two = timing_of({5, 1});
  EXPECT_EQ(two.median_ms, 3);
  EXPECT_EQ(two.min_ms, 1);
  EXPECT_EQ(two.max_ms, 5);
  EXPECT_EQ(timing_of({4, 1, 3, 8}).median_ms, 3.5);
  EXPECT_EQ(timing_of({4, 1, 8}).median_ms, 4);
  EXPECT_EQ(timing_of({7}).median_ms, 7);
}

TEST(Timing, SingleTime_HasNoSpread) {
  StudyRow row;
  set_times(row, timing_of({2}));
  EXPECT_EQ(row.figures["median_ms"], 2);
  EXPECT_FALSE(row.figures["min_ms"] || row.figures["max_ms"]);
  set_times(row, timing_of({3, 1}));
  EXPECT_EQ(row.figures["min_ms"], 1);
  EXPECT_EQ(row.figures["max_ms"], 3);
}

TEST(Repetitions, LongRun_IsRepeatedLessButAtLeastTwice) {
  const MeasureOptions options{.budget_ms = 500, .min_repetitions = 5, .max_repetitions = 50, .max_ms = 4000};
  EXPECT_EQ(repetitions_for(options, 1), 50);
  EXPECT_EQ(repetitions_for(options, 50), 10);
  EXPECT_EQ(repetitions_for(options, 500), 5);
  EXPECT_EQ(repetitions_for(options, 1300), 3);
  EXPECT_EQ(repetitions_for(options, 60000), 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, MeasureTest, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
