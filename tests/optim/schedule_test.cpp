#include "tandem/optim/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

double rate_at_epoch(const ScheduleOptions& options, std::int64_t epoch) {
  return learning_rate_at(options, 1, epoch, 0, 100);
}

TEST(Schedule, Constant_Stays_Step_FallsBetweenEpochs) {
  EXPECT_EQ(rate_at_epoch({}, 50), 1);
  const ScheduleOptions options{.kind = ScheduleKind::step, .step_size = 3, .gamma = 0.1};
  EXPECT_EQ(rate_at_epoch(options, 2), 1);
  EXPECT_EQ(learning_rate_at(options, 1, 2, 99, 100), 1);
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 3), 0.1);
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 6), 0.01);
}

TEST(Schedule, Cosine_FollowsHalfAPeriod) {
  const ScheduleOptions options{.kind = ScheduleKind::cosine, .epochs = 10, .min_lr = 0.2};
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 5), 0.6);
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 10), 0.2);
}

TEST(Schedule, OneCycle_RisesFallsAndKeepsItsFinalRate) {
  const ScheduleOptions options{.kind = ScheduleKind::one_cycle, .epochs = 10};
  EXPECT_NEAR(rate_at_epoch(options, 0), 1.0 / 25, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1, 2, 99, 100), 1);  // step 299 of 1000
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1, 9, 99, 100), 1.0 / 25 / 1e4);
  EXPECT_DOUBLE_EQ(rate_at_epoch(options, 40), 1.0 / 25 / 1e4);
  EXPECT_DOUBLE_EQ(momentum_at(options, 0.9, 0, 0, 100), 0.95);
  EXPECT_DOUBLE_EQ(momentum_at(options, 0.9, 2, 99, 100), 0.85);
  EXPECT_DOUBLE_EQ(momentum_at(options, 0.9, 9, 99, 100), 0.95);
  EXPECT_EQ(momentum_at({}, 0.9, 0, 0, 100), 0.9);
}

TEST(Schedule, OneCycle_FewSteps_RateIsValid) {
  for (std::int64_t epochs : {1, 2, 3, 4, 10})
    for (double fraction : {0.0, 0.1, 0.3, 1.0})
      for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
        const ScheduleOptions options{
            .kind = ScheduleKind::one_cycle, .epochs = epochs, .pct_start = fraction};
        const double rate = learning_rate_at(options, 1, epoch, 0, 1);
        EXPECT_TRUE(rate > 0 && rate <= 1) << epochs << " epochs, pct_start " << fraction << ": " << rate;
      }
}

// 480 steps, of which 110 rise: the figures of a recipe for CIFAR-10.
TEST(Schedule, Triangular_RisesAndFallsInStraightLines) {
  const ScheduleOptions options{.kind = ScheduleKind::triangular,
                                .epochs = 10,
                                .pct_start = 0.23,
                                .start_factor = 0.2,
                                .end_factor = 0.07};
  for (std::int64_t step = 0; step < 480; ++step) {
    const auto t = static_cast<double>(step);
    const double factor = step < 110 ? 0.2 + 0.8 * t / 110 : 1 - 0.93 * (t - 110) / 370;
    EXPECT_NEAR(learning_rate_at(options, 1.5, step / 48, step % 48, 48), 1.5 * factor, 1e-14) << step;
  }
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1.5, 20, 0, 48), 1.5 * 0.07);
  EXPECT_EQ(momentum_at(options, 0.85, 3, 7, 48), 0.85);
}

TEST(Schedule, Triangular_FewSteps_RateIsValid) {
  for (const double fraction : {0.0, 0.3, 1.0})
    for (std::int64_t epochs : {1, 2, 3}) {
      const ScheduleOptions options{
          .kind = ScheduleKind::triangular, .epochs = epochs, .pct_start = fraction};
      for (std::int64_t epoch = 0; epoch <= epochs; ++epoch) {
        const double rate = learning_rate_at(options, 1, epoch, 0, 1);
        EXPECT_TRUE(rate >= 0 && rate <= 1) << epochs << " epochs, pct_start " << fraction << ": " << rate;
      }
    }
}

TEST(Schedule, WarmUp_ScalesTheFirstStepsOfAnyKind) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::step, ScheduleKind::cosine}) {
    const ScheduleOptions plain{.kind = kind, .epochs = 4, .step_size = 1};
    ScheduleOptions warm = plain;
    warm.warmup_steps = 15;  // one and a half epochs of ten
    for (std::int64_t step = 0; step < 40; ++step) {
      const double share = std::min(1.0, static_cast<double>(step + 1) / 15);
      EXPECT_DOUBLE_EQ(learning_rate_at(warm, 1, step / 10, step % 10, 10),
                       share * learning_rate_at(plain, 1, step / 10, step % 10, 10));
    }
  }
}

TEST(Schedule, WarmUpInEpochs_IsRoundedToSteps) {
  const ScheduleOptions steps{.epochs = 4, .warmup_steps = 15};
  const ScheduleOptions epochs{.epochs = 4, .warmup_epochs = 1.49};
  const ScheduleOptions both{.epochs = 4, .warmup_steps = 5, .warmup_epochs = 1};
  for (std::int64_t step = 0; step < 40; ++step)
    for (const ScheduleOptions& options : {epochs, both})
      EXPECT_EQ(learning_rate_at(options, 0.7, step / 10, step % 10, 10),
                learning_rate_at(steps, 0.7, step / 10, step % 10, 10));
  EXPECT_EQ(error_text([] { check_schedule({.warmup_epochs = -1}); }),
            "[schedule] expected 0 or more warm-up epochs, got -1");
}

TEST(Schedule, InvalidOptions_Throw) {
  check_schedule({});
  EXPECT_EQ(error_text([] { check_schedule({.epochs = 0}); }),
            "[schedule] expected at least one epoch, got 0");
  EXPECT_EQ(error_text([] { check_schedule({.warmup_steps = -1}); }),
            "[schedule] expected 0 or more warm-up steps, got -1");
  EXPECT_EQ(error_text([] { check_schedule({.step_size = 0}); }),
            "[schedule] expected a step size of 1 or more epochs, got 0");
  EXPECT_EQ(error_text([] { check_schedule({.gamma = -1}); }), "[schedule] expected a gamma above 0, got -1");
  EXPECT_EQ(error_text([] { check_schedule({.min_lr = -1}); }),
            "[schedule] expected a minimum learning rate of 0 or more, got -1");
  EXPECT_EQ(error_text([] { check_schedule({.pct_start = 2}); }),
            "[schedule] expected pct_start from 0 to 1, got 2");
  EXPECT_EQ(error_text([] { check_schedule({.div_factor = 0}); }),
            "[schedule] expected div factors above 0, got 0 and 10000");
  EXPECT_EQ(error_text([] { check_schedule({.start_factor = 0}); }),
            "[schedule] expected a start factor above 0 and an end factor of 0 or more, got 0 and 0");
}

TEST(Schedules, Rows_AreInTheOrderOfTheirKinds) {
  EXPECT_EQ(schedules().list(), "constant, step, cosine, one-cycle, triangular");
  for (std::size_t i = 0; i < schedules().rows().size(); ++i)
    EXPECT_EQ(schedules().rows()[i].kind, static_cast<ScheduleKind>(i));
}

}  // namespace
}  // namespace tandem
