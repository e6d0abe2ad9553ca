// The parts of a probe: nearest neighbors, the choice of labeled images, paired differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tandem/study/probe/few_shot.h"
#include "tandem/study/probe/nearest_neighbors.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

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
