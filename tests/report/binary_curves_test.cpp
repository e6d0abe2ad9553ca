// Curves of two classes, and reliability, against stored values (tests/golden/make_metrics.py).
#include "tandem/report/binary_curves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tandem/report/reliability.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

TEST(BinaryCurves, Areas_EqualStoredValues) {
  const std::vector<golden::Case> cases = golden::load("metrics", "binary");
  EXPECT_EQ(cases.size(), 4u);
  for (const golden::Case& one : cases) {
    const BinaryCurves curves =
        binary_curves(one.array("scores").values<double>(), one.array("positive").values<std::uint8_t>());
    EXPECT_NEAR(curves.auc, one.array("auc").values<double>()[0], 1e-12) << one.name;
    EXPECT_NEAR(curves.average_precision, one.array("average_precision").values<double>()[0], 1e-12)
        << one.name;
  }
}

TEST(BinaryCurves, Points_AreOnePerDistinctScore) {
  const BinaryCurves curves =
      binary_curves(std::vector{0.1, 0.4, 0.35, 0.8, 0.4}, std::vector<std::uint8_t>{0, 0, 1, 1, 1});
  ASSERT_EQ(curves.points.size(), 5u);
  const double thresholds[] = {INFINITY, 0.8, 0.4, 0.35, 0.1}, found[] = {0, 1, 2, 3, 3},
               wrong[] = {0, 0, 1, 1, 2};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(curves.points[i].threshold, thresholds[i]);
    EXPECT_DOUBLE_EQ(curves.points[i].true_positive_rate, found[i] / 3);
    EXPECT_DOUBLE_EQ(curves.points[i].false_positive_rate, wrong[i] / 2);
    if (i == 0) continue;
    EXPECT_DOUBLE_EQ(curves.points[i].precision, found[i] / (found[i] + wrong[i]));
  }
  EXPECT_EQ(&point_at(curves, 0.9), &curves.points[0]);
  EXPECT_EQ(&point_at(curves, 0.4), &curves.points[2]);
  EXPECT_EQ(&point_at(curves, 0.0), &curves.points[4]);
}

TEST(BinaryCurves, OneClass_HasNoArea) {
  const BinaryCurves positive = binary_curves(std::vector{0.2, 0.7}, std::vector<std::uint8_t>{1, 1});
  EXPECT_TRUE(std::isnan(positive.auc));
  EXPECT_EQ(positive.average_precision, 1);
  const BinaryCurves negative = binary_curves(std::vector{0.2, 0.7}, std::vector<std::uint8_t>{0, 0});
  EXPECT_TRUE(std::isnan(negative.auc));
  EXPECT_TRUE(std::isnan(negative.average_precision));
  EXPECT_FALSE(negative.has_both_classes());
  EXPECT_EQ(binary_curves({}, {}).points.size(), 1u);
}

TEST(YoudenThreshold, SeparatesTheClassesMidway) {
  const auto chosen = [](const std::vector<double>& scores, const std::vector<std::uint8_t>& positive) {
    return youden_threshold(binary_curves(scores, positive));
  };
  EXPECT_DOUBLE_EQ(chosen({0.1, 0.2, 0.4, 0.9}, {0, 0, 1, 1}), 0.3);
  EXPECT_DOUBLE_EQ(chosen({0.9, 0.92, 0.96, 0.99}, {0, 0, 1, 1}), 0.94);
  // Finding all of the few positives is worth one of the many negatives.
  EXPECT_DOUBLE_EQ(chosen({0.05, 0.1, 0.15, 0.2, 0.3, 0.25, 0.5}, {0, 0, 0, 0, 0, 1, 1}), 0.225);
  // Of equal ones the nearest to a half.
  EXPECT_DOUBLE_EQ(chosen({0.1, 0.6, 0.2, 0.9}, {0, 1, 0, 1}), 0.4);
}

TEST(Reliability, ErrorAndLoss_EqualStoredValues) {
  const std::vector<golden::Case> cases = golden::load("metrics", "calibration");
  EXPECT_EQ(cases.size(), 3u);
  for (const golden::Case& one : cases) {
    const std::vector<float> logits = one.array("logits").values<float>();
    const std::vector<std::int32_t> labels = one.array("labels").values<std::int32_t>();
    const std::size_t classes = logits.size() / labels.size();
    std::vector<float> shares(logits.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[i * classes + c]));
      for (std::size_t c = 0; c < classes; ++c)
        shares[i * classes + c] =
            static_cast<float>(std::exp(static_cast<double>(logits[i * classes + c])) / sum);
    }
    const Reliability measured = reliability(shares, labels, static_cast<std::int64_t>(classes));
    EXPECT_NEAR(measured.ece, one.array("ece").values<double>()[0], 1e-6) << one.name;
    EXPECT_NEAR(measured.loss, one.array("nll").values<double>()[0], 1e-6) << one.name;
    std::int64_t images = 0;
    for (const ReliabilityBin& bin : measured.bins) images += bin.images;
    EXPECT_EQ(images, std::ssize(labels));
  }
  EXPECT_TRUE(std::isnan(reliability({}, {}, 2).ece));
}

}  // namespace
}  // namespace tandem
