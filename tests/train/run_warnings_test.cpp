#include "tandem/train/run_warnings.h"

#include <gtest/gtest.h>

#include "tandem/data/synthetic/digits.h"

namespace tandem {
namespace {

TrainingData data_with(std::vector<std::int32_t> labels, std::vector<std::string> classes) {
  TrainingData data;
  const auto count = static_cast<std::int64_t>(labels.size());
  data.validation = {.images = Tensor::empty({count, 2, 2, 1}, DType::u8),
                     .labels = Tensor::from(labels, {count}),
                     .classes = classes};
  data.train.classes = std::move(classes);
  data.validated_on = "validation";
  return data;
}

// 200 images of two classes, equally frequent.
TrainingData balanced() {
  std::vector<std::int32_t> labels(200);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 2);
  return data_with(labels, {"cat", "dog"});
}

std::vector<std::string> warnings_of(double train_loss, double val_loss, double accuracy,
                                     bool calibrated = false) {
  const EpochRecord record{
      .epoch = 3, .train_loss = train_loss, .val_loss = val_loss, .val_accuracy = accuracy, .val_count = 200};
  return result_warnings(balanced(), {record}, record, true, calibrated);
}

TEST(RunWarnings, SmallValidationSetAndMissingClasses_AreTold) {
  const std::vector<std::string> warnings =
      data_warnings(data_with({0, 0, 2, 2, 0, 2, 0, 2}, {"cat", "cow", "dog", "gnu"}));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "only 8 validation images: an accuracy of 50 % could be anything from 22 to 78 %");
  EXPECT_EQ(warnings[1], "no validation images of 'cow', 'gnu': the figures say nothing about them");
  EXPECT_EQ(data_warnings(balanced()), std::vector<std::string>{});
}

// A rate of 50 % has an interval of ±10 points with 93 images (1.96² / 0.2² − 1.96² = 92.2).
TEST(RunWarnings, FewImagesForAThreshold_AreTold) {
  const auto warnings = [](std::size_t cats, std::size_t dogs) {
    std::vector<std::int32_t> labels(cats + dogs);
    std::fill(labels.begin() + static_cast<std::ptrdiff_t>(cats), labels.end(), 1);
    return threshold_warnings(data_with(labels, {"cat", "dog"}));
  };
  EXPECT_EQ(warnings(93, 93), std::vector<std::string>{});
  EXPECT_EQ(
      warnings(2000, 92),
      std::vector<std::string>{"too few validation images to choose a threshold by, 2000 of 'cat' and 92 "
                               "of 'dog': a rate of 50 % on 92 could be anything from 40 to 60 %"});
  EXPECT_EQ(warnings(4, 5), std::vector<std::string>{
                                "too few validation images to choose a threshold by, 4 of 'cat' and 5 of "
                                "'dog': a rate of 50 % on 4 could be anything from 15 to 85 %"});
}

TEST(RunWarnings, SortedByClassAndNotShuffled_IsTold) {
  TrainingData data = balanced();
  const auto warnings = [&](std::vector<std::int32_t> labels, bool shuffle) {
    data.train = ImageSet{.images = Tensor::empty({6, 2, 2, 1}, DType::u8),
                          .labels = Tensor::from(labels, {6}),
                          .classes = {"cat", "dog", "gnu"}};
    return order_warnings(data, shuffle);
  };
  const std::vector<std::string> told{
      "the training images are sorted by class and not shuffled: each epoch ends with images of one class"};
  EXPECT_EQ(warnings({0, 0, 1, 1, 2, 2}, false), told);
  EXPECT_EQ(warnings({2, 2, 2, 0, 0, 0}, false), told);
  EXPECT_TRUE(warnings({0, 0, 1, 1, 2, 2}, true).empty());
  EXPECT_TRUE(warnings({0, 1, 2, 0, 1, 2}, false).empty());
}

TEST(RunWarnings, LossAboveChance_IsTold) {
  EXPECT_EQ(warnings_of(0.3, 0.4, 0.9), std::vector<std::string>{});
  EXPECT_EQ(
      warnings_of(0.7, 0.4, 0.9),
      (std::vector<std::string>{"the training loss ends at 0.700, no better than chance (ln 2 = 0.693): "
                                "the network has not learned; a lower learning rate may help"}));
  EXPECT_EQ(warnings_of(0.3, 0.8, 0.9),
            (std::vector<std::string>{"the validation loss of the kept model is 0.800, above chance (ln 2 = "
                                      "0.693): its probabilities are too certain (the option calibrate "
                                      "corrects that), or the labels do not fit"}));
  EXPECT_EQ(warnings_of(0.3, 0.8, 0.9, true), std::vector<std::string>{});
  const EpochRecord squared{.epoch = 1, .train_loss = 0.9, .val_loss = 0.9, .val_accuracy = 0.9};
  EXPECT_EQ(result_warnings(balanced(), {squared}, squared, false, false), std::vector<std::string>{});
}

TEST(RunWarnings, LossNotFinite_IsTold) {
  EXPECT_EQ(warnings_of(0.3, std::nan(""), 0.9),
            (std::vector<std::string>{"the validation loss of epoch 3 is not finite"}));
}

TEST(RunWarnings, NoProgress_IsTold) {
  EXPECT_EQ(warnings_of(0.3, 0.4, 0.55),
            (std::vector<std::string>{"the accuracy of 55.00 % (48.08–61.74) cannot be told from always "
                                      "answering 'cat' (50.00 %)"}));
}

}  // namespace
}  // namespace tandem
