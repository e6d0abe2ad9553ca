// Logistic regression against SciPy (tests/golden/make_logistic.py), and the standardization of features.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/philox.h"
#include "tandem/train/logistic_regression.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

FeatureRows random_rows(std::int64_t count, std::int64_t width, std::uint64_t seed) {
  FeatureRows rows{.count = count, .width = width};
  for (std::int64_t i = 0; i < count * width; ++i) {
    const Words4 words = random_block(seed, 0, static_cast<std::uint64_t>(i));
    rows.values.push_back(2 * to_unit_double(words.word[0], words.word[1]) - 1);
  }
  return rows;
}

TEST(LogisticRegression, Weights_EqualSciPys) {
  for (const golden::Case& one : golden::load("logistic")) {
    SCOPED_TRACE(one.name);
    const golden::Array& x = one.array("x");
    const std::vector<double> expected = one.array("weights").values<double>();
    const std::int64_t classes = one.array("weights").shape[0];
    const std::vector<std::int32_t> labels = one.array("labels").values<std::int32_t>();
    const FeatureRows rows{.count = x.shape[0], .width = x.shape[1], .values = x.values<double>()};
    const double penalty = one.params.at("penalty");
    const LogisticModel model = fit_logistic(rows, labels, classes, {.penalty = penalty, .tolerance = 1e-10});
    EXPECT_TRUE(model.converged);
    ASSERT_EQ(model.weights.size(), expected.size());
    double max_weight = 1, max_error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      max_weight = std::max(max_weight, std::abs(expected[i]));
      max_error = std::max(max_error, std::abs(expected[i] - model.weights[i]));
    }
    EXPECT_LT(max_error / max_weight, 1e-5);
    std::vector<double> gradient;
    EXPECT_NEAR(detail::LogisticLoss(rows, labels, classes, penalty)(model.weights, gradient),
                one.array("loss").values<double>()[0], 1e-12);
  }
}

TEST(LogisticRegression, Gradient_EqualsDifferences) {
  const FeatureRows x = random_rows(9, 4, 1);
  const std::vector<std::int32_t> labels{0, 1, 2, 2, 1, 0, 0, 2, 2};
  detail::LogisticLoss loss(x, labels, 3, 0.3);
  std::vector<double> weights = random_rows(3, 5, 2).values, gradient, unused;
  loss(weights, gradient);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    constexpr double step = 1e-5;
    const double value = weights[i];
    weights[i] = value + step;
    const double above = loss(weights, unused);
    weights[i] = value - step;
    const double below = loss(weights, unused);
    weights[i] = value;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-9) << i;
  }
}

// A class of weight 2 is a class whose rows are there twice.
TEST(LogisticRegression, ClassWeights_AreNumbersOfRows) {
  const FeatureRows once{.count = 3, .width = 2, .values = {1, 0, 0.5, 1, -1, 0.25}};
  const FeatureRows twice{.count = 4, .width = 2, .values = {1, 0, 0.5, 1, 0.5, 1, -1, 0.25}};
  detail::LogisticLoss weighted(once, std::vector<std::int32_t>{0, 1, 0}, 2, 0.1, {1, 2});
  detail::LogisticLoss repeated(twice, std::vector<std::int32_t>{0, 1, 1, 0}, 2, 0.1);
  std::vector<double> gradient, expected;
  const std::vector<double> weights{0.1, 0.2, 0.3, -0.4, 0.5, 0.6};
  EXPECT_NEAR(weighted(weights, gradient), repeated(weights, expected), 1e-12);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(gradient[i], expected[i], 1e-12);
}

TEST(LogisticRegression, DefaultOptions_ConvergeOnFewImagesOfManyFeatures) {
  const FeatureRows x = random_rows(40, 300, 3);
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 40; ++i) labels.push_back(i % 4);
  const LogisticModel model = fit_logistic(x, labels, 4);
  EXPECT_TRUE(model.converged);
  EXPECT_EQ(model.predict(x), labels);  // there are more features than images
  const LogisticModel again = fit_logistic(x, labels, 4);
  EXPECT_EQ(again.weights, model.weights);
}

TEST(Standardization, LabeledRows_HaveMeanZeroAndUnitLength) {
  const Features features{.count = 4, .width = 3, .values = {1, 7, 5, 3, 7, 9, 100, 100, 100, 5, 7, 1}};
  const std::vector<std::int64_t> labeled{0, 1, 3};
  const FeatureRows rows = Standardization(features, labeled)(features, labeled);
  double squares = 0;
  for (int column = 0; column < 3; ++column) {
    double sum = 0;
    for (int row = 0; row < 3; ++row) {
      sum += rows.row(row)[column];
      squares += rows.row(row)[column] * rows.row(row)[column];
    }
    EXPECT_NEAR(sum, 0, 1e-12);
  }
  EXPECT_NEAR(squares / 3, 2.0 / 3, 1e-12);  // two of three features are not constant
  EXPECT_EQ(rows.row(0)[1], 0);
  EXPECT_NEAR(rows.row(2)[0], std::sqrt(1.5 / 3), 1e-12);  // (5 − 3) / √(8/3) / √3
}

}  // namespace
}  // namespace tandem
