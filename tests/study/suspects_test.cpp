// Likely mislabels and outliers among rows of numbers.
#include "tandem/study/check/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tandem {
namespace {

// Rows around one center per class.
class Suspects : public testing::Test {
 protected:
  explicit Suspects(std::int64_t count = 120) {
    constexpr std::int64_t width = 8;
    std::mt19937 random(3);
    std::normal_distribution<float> noise(0, 1);
    x_ = {.count = count, .width = width};
    for (std::int64_t i = 0; i < count; ++i) {
      labels_.push_back(static_cast<std::int32_t>(i % 3));
      copies_.push_back(i);
      for (std::int64_t k = 0; k < width; ++k)
        x_.values.push_back(noise(random) + (k == i % 3 ? 9.0f : 0.0f));
    }
  }
  LabeledFeatures images() const { return {.x = x_, .labels = labels_, .copies = copies_, .classes = 3}; }

  Features x_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int64_t> copies_;
};

TEST_F(Suspects, WrongLabels_AreFoundWithTheirClass) {
  const std::set<std::int64_t> wrong{4, 50, 51, 89};
  for (const std::int64_t row : wrong)
    labels_[static_cast<std::size_t>(row)] = static_cast<std::int32_t>((row + 1) % 3);
  const LabelCheck result = check_labels(images());
  EXPECT_EQ(result.folds, 5);
  EXPECT_NEAR(result.accuracy, 116.0 / 120, 0.02);
  ASSERT_GE(result.suspects.size(), 4U);
  std::set<std::int64_t> found;
  for (std::size_t i = 0; i < 4; ++i) {
    const LabelSuspect& suspect = result.suspects[i];
    found.insert(suspect.row);
    EXPECT_EQ(suspect.suggested, suspect.row % 3);
    EXPECT_GE(suspect.suggested_probability, 0.7);
    EXPECT_LT(suspect.label_probability, 0.3);
  }
  EXPECT_EQ(found, wrong);
}

TEST_F(Suspects, CopiesWithTheSameWrongLabel_DoNotVouchForEachOther) {
  // Row 4 twenty times, all with the wrong label: in one fold, so that none is learned from the others.
  for (int i = 0; i < 20; ++i) {
    for (std::int64_t k = 0; k < x_.width; ++k) x_.values.push_back(x_.row(4)[k]);
    labels_.push_back(2);
    copies_.push_back(4);
    ++x_.count;
  }
  labels_[4] = 2;
  const LabelCheck result = check_labels(images());
  ASSERT_GE(result.suspects.size(), 21U);
  for (std::size_t i = 0; i < 21; ++i)
    EXPECT_EQ(copies_[static_cast<std::size_t>(result.suspects[i].row)], 4) << i;
}

TEST_F(Suspects, SmallClassesAndImagesWithoutLabel_TakeNoPart) {
  for (std::size_t i = 0; i < labels_.size(); ++i)
    if (labels_[i] == 2) labels_[i] = i < 12 ? 2 : -1;  // four are left
  const LabelCheck result = check_labels(images());
  EXPECT_EQ(result.folds, 5);
  EXPECT_TRUE(result.suspects.empty());
  for (std::int32_t& label : labels_) label = label == 0 ? 0 : -1;
  EXPECT_EQ(check_labels(images()).folds, 0);
}

TEST_F(Suspects, FarRows_AreOutliersAlsoIfCopied) {
  EXPECT_TRUE(find_outliers(images()).empty());
  for (const std::int64_t row : {7, 30, 31, 32, 33, 34, 35}) {
    for (std::int64_t k = 0; k < x_.width; ++k)
      x_.row(row)[k] = static_cast<float>((row == 7 ? 15 : -20) * (k % 2 == 0 ? 1 : -1));
    if (row >= 30) copies_[static_cast<std::size_t>(row)] = 30;  // near each other only
  }
  const std::vector<FeatureOutlier> outliers = find_outliers(images());
  ASSERT_EQ(outliers.size(), 7U);
  EXPECT_EQ(outliers[6].row, 7);
  EXPECT_GT(outliers[6].distance, 2);
}

TEST_F(Suspects, EqualRows_AreNoOutliers) {
  std::ranges::fill(x_.values, 1.0f);
  EXPECT_TRUE(find_outliers(images()).empty());
  x_.count = 3;
  EXPECT_TRUE(find_outliers(images()).empty());
}

}  // namespace
}  // namespace tandem
