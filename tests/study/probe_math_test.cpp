// The probes by themselves: logistic regression against SciPy (tests/golden/make_logistic.py), nearest
// neighbors, the choice of labeled images, paired differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tandem/core/philox.h"
#include "tandem/study/probe/few_shot.h"
#include "tandem/study/probe/logistic_regression.h"
#include "tandem/study/probe/nearest_neighbors.h"
#include "tests/core/error_text.h"
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

TEST(NearestNeighbors, HandMadeCase) {
  // Directions: 0° and 20° are class 0, 90° is class 1; lengths do not matter.
  const auto direction = [](double degrees, double length) {
    const double angle = degrees * 3.14159265358979 / 180;
    return std::vector<float>{static_cast<float>(length * std::cos(angle)),
                              static_cast<float>(length * std::sin(angle))};
  };
  const auto rows_of = [](const std::vector<std::vector<float>>& rows) {
    Features features{.count = std::ssize(rows), .width = 2};
    for (const auto& row : rows) features.values.insert(features.values.end(), row.begin(), row.end());
    return features;
  };
  const Features x = rows_of({direction(0, 1), direction(20, 9), direction(90, 0.1)});
  const std::vector<std::int32_t> labels{0, 0, 1};
  const LabeledRows labeled{x, labels, 3};
  const Features queries =
      rows_of({direction(5, 0.01), direction(50, 3), direction(60, 1), direction(57, 1), {0, 0}});
  using Classes = std::vector<std::int32_t>;
  EXPECT_EQ(nearest_neighbor_classes(labeled, queries, 1), (Classes{0, 0, 1, 1, 0}));
  // At 57° the votes are exp(cos 37°/0.07), exp(cos 57°/0.07) against exp(cos 33°/0.07): the nearest wins.
  EXPECT_EQ(nearest_neighbor_classes(labeled, queries, 3), (Classes{0, 0, 1, 1, 0}));
  EXPECT_TRUE(nearest_neighbor_classes(labeled, {.count = 0, .width = 2}, 2).empty());
}

TEST(NearestNeighbors, ManyNeighbors_OutvoteTheNearest) {
  const Features x{.count = 4, .width = 2, .values = {1, 0.02F, 1, 0.05F, 1, 0.06F, 1, 0.07F}};
  const std::vector<std::int32_t> labels{0, 1, 1, 1};
  const Features query{.count = 1, .width = 2, .values = {1, 0}};
  EXPECT_EQ(nearest_neighbor_classes({x, labels, 2}, query, 1).front(), 0);
  EXPECT_EQ(nearest_neighbor_classes({x, labels, 2}, query, 4).front(), 1);
}

class LabeledImages : public testing::Test {
 protected:
  LabeledImages() {
    for (int i = 0; i < 300; ++i) labels_.push_back(i % 7 == 0 ? -1 : i % 3);
  }
  std::vector<std::int64_t> choose(std::int64_t per_class, std::int64_t draw, std::uint64_t seed = 1) {
    return choose_labeled(labels_, {"a", "b", "c"}, per_class, {seed, draw});
  }
  std::vector<std::int32_t> labels_;
};

TEST_F(LabeledImages, AreBalancedAndDistinct) {
  const auto chosen = choose(20, 0);
  EXPECT_EQ(chosen.size(), 60U);
  EXPECT_EQ(std::set(chosen.begin(), chosen.end()).size(), 60U);
  std::vector<int> counts(3);
  for (const std::int64_t i : chosen) {
    ASSERT_GE(labels_[static_cast<std::size_t>(i)], 0);  // −1 is not available
    ++counts[static_cast<std::size_t>(labels_[static_cast<std::size_t>(i)])];
  }
  EXPECT_EQ(counts, (std::vector<int>{20, 20, 20}));
}

TEST_F(LabeledImages, DependOnSeedAndDrawOnly_AndFewerAreAmongMore) {
  EXPECT_EQ(choose(20, 3), choose(20, 3));
  EXPECT_NE(choose(20, 3), choose(20, 4));
  EXPECT_NE(choose(20, 3), choose(20, 3, 2));
  const auto few = choose(5, 3), many = choose(20, 3);
  const std::set<std::int64_t> all(many.begin(), many.end());
  for (const std::int64_t i : few) EXPECT_TRUE(all.contains(i)) << i;
}

TEST_F(LabeledImages, EveryImageIsChosenAboutEquallyOften) {
  std::vector<int> counts(labels_.size());
  for (int draw = 0; draw < 400; ++draw)
    for (const std::int64_t i : choose(10, draw)) ++counts[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i < counts.size(); ++i) {  // about 86 images of a class: 47 ± 6.5
    const bool available = labels_[i] >= 0;
    EXPECT_NEAR(counts[i], available ? 47 : 0, available ? 33 : 0) << i;
  }
}

TEST_F(LabeledImages, TooFew_Throws) {
  EXPECT_EQ(error_text([&] { choose(90, 0); }),
            "[probe] expected 90 or more training images of every class, got 85 of 'a'");
  EXPECT_EQ(error_text([&] { choose(0, 0); }),
            "[probe] expected 1 or more training images of every class, got 85 of 'a'");
}

TEST(PairedDifference, Interval_CoversDrawsAndImages) {
  const Correct base{{1, 0, 0, 0}, {1, 0, 1, 0}}, better{{1, 1, 0, 0}, {1, 1, 1, 1}};
  EXPECT_EQ(accuracies(better), (std::vector<double>{0.5, 1}));
  const ProbeDifference difference = paired_difference(better, base);
  EXPECT_DOUBLE_EQ(difference.mean, 0.375);
  // Draws: 0.25 and 0.5, variance of the mean 0.015625. Images: 0, 1, 0, 0.5; variance of the mean
  // 0.6875 / 3 / 4. Student's t with one degree of freedom: 12.706.
  const double half = 12.706 * std::sqrt(0.015625 + 0.6875 / 12);
  EXPECT_NEAR(difference.interval.low, 0.375 - half, 1e-9);
  EXPECT_NEAR(difference.interval.high, 0.375 + half, 1e-9);
  const ProbeDifference same = paired_difference(base, base);
  EXPECT_EQ(same.mean, 0);
  EXPECT_EQ(same.interval.high, 0);
  EXPECT_TRUE(std::isnan(paired_difference({{1, 1}}, {{1, 0}}).interval.low));
}

TEST(PairedDifference, ManyDraws_UseStudentsQuantile) {
  Correct base, other;  // the same for all images: only draws differ
  for (int i = 0; i < 21; ++i) {
    base.push_back({0, 0});
    other.push_back(i % 2 == 0 ? std::vector<std::uint8_t>{1, 1} : std::vector<std::uint8_t>{0, 0});
  }
  const ProbeDifference difference = paired_difference(other, base);
  const double mean = 11.0 / 21, error = std::sqrt(mean * (1 - mean) / 20);
  EXPECT_NEAR((difference.interval.high - difference.mean) / error, 2.08596, 1e-3);  // scipy.stats.t.ppf
}

}  // namespace
}  // namespace tandem
