#include "tandem/report/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

// Expected values: Wilson's formula, (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n), z the 97.5 %
// quantile of the normal distribution, computed in Python.
TEST(Interval, Wilson_EqualsTheFormula) {
  const auto expect_interval = [](double successes, std::int64_t count, double low, double high) {
    const Interval interval = wilson_interval(successes / static_cast<double>(count), count);
    EXPECT_NEAR(interval.low, low, 1e-9) << successes << " of " << count;
    EXPECT_NEAR(interval.high, high, 1e-9) << successes << " of " << count;
  };
  expect_interval(7, 8, 0.5291118177871464, 0.9775825085499433);
  expect_interval(9705, 10000, 0.9669987234833, 0.9736399340498934);
  expect_interval(0, 10, 0, 0.2775327998628892);
  expect_interval(10, 10, 0.7224672001371107, 1);
}

TEST(Interval, NoImagesOrNoShare_SaysSo) {
  EXPECT_EQ(wilson_interval(0.5, 0).low, 0);
  EXPECT_EQ(wilson_interval(0.5, 0).high, 1);
  EXPECT_TRUE(std::isnan(wilson_interval(std::nan(""), 10).low));
}

TEST(Interval, Texts) {
  EXPECT_EQ(format_accuracy(0.9705, 10000), "97.05 % (96.70–97.36)");
  EXPECT_EQ(format_accuracy(0.875, 8), "87.50 % (52.91–97.76)");
  EXPECT_EQ(format_accuracy(0.875, 0), "87.50 %");
  EXPECT_EQ(format_accuracy(std::nan(""), 8), "–");
  EXPECT_EQ(describe_accuracy(0.875, 8), "87.50 % (95 % interval 52.91–97.76)");
  EXPECT_EQ(format_interval({0.5, 1}), "50.00–100.00 %");
}

}  // namespace
}  // namespace tandem
