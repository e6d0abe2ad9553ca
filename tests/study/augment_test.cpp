#include "tandem/study/augment.h"

#include <gtest/gtest.h>

#include "tandem/data/dataset_registry.h"
#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

TEST(StudyAugment, PlainAndAugmented_DifferOnlyInImages) {
  const TrainingSetup data = training_setup("augment", {}, digits_split(300, 100));
  const AugmentCase augment_case{.images = 100, .epochs = 3, .seeds = 4};
  const StudyOptions options{.devices = {cpu_device}};
  StudyProgress progress(options);
  const AugmentResult result = compare_augmentation(data, augment_case, options, progress);
  EXPECT_EQ(result.device, "cpu");
  for (const auto* curves : {&result.plain, &result.augmented}) {
    ASSERT_EQ(curves->size(), 4u);
    for (const AugmentResult::Curve& curve : *curves) EXPECT_EQ(curve.size(), 3u);
    EXPECT_NE((*curves)[0], (*curves)[1]) << "another seed uses other images";
  }
  EXPECT_NE(result.plain, result.augmented);
  const AugmentResult again = compare_augmentation(data, augment_case, options, progress);
  EXPECT_EQ(result.plain, again.plain);
  EXPECT_EQ(result.augmented, again.augmented);
}

TEST(StudyAugment, AfterTimeLimit_SeedsAreLeftOut) {
  const TrainingSetup data = training_setup("augment", {}, digits_split(100, 50));
  const StudyOptions options{.devices = {cpu_device}, .time_limit_s = 1e-6};
  StudyProgress progress(options);
  const AugmentResult result =
      compare_augmentation(data, {.images = 100, .epochs = 1, .seeds = 4}, options, progress);
  EXPECT_EQ(result.augment_case.seeds, 1);
  EXPECT_EQ(result.plain.size(), 1u);
  EXPECT_EQ(progress.findings(),
            std::vector<std::string>{"Left out after the time limit of 1e-06 s: 100 images, 3 of 4 seeds."});
}

TEST(StudyAugment, Options_AreRespected) {
  const StudyReport report =
      study_augment({.quick = true, .devices = {cpu_device}, .epochs = 1, .seeds = 1, .data = "digits"});
  EXPECT_EQ(report.study, "augment");
  ASSERT_EQ(report.rows.size(), 2u) << "1,000 and 10,000 images";
  EXPECT_EQ(report.rows[1].case_name, "10,000 images, 1 seed");
  EXPECT_GT(report.rows[1].value("plain"), report.rows[0].value("plain")) << "ten times the steps";
  EXPECT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.plots.size(), 2u);
}

TEST(StudyAugment, OwnDataRecipeAndNetwork_AreTrainedAndNamed) {
  const TempFolder folder;
  write_small_digits(folder / "small");
  const StudyReport report = study_augment({.quick = true,
                                            .devices = {cpu_device},
                                            .epochs = 15,
                                            .seeds = 1,
                                            .data = (folder / "small").string(),
                                            .limit = 120,
                                            .augment = Transform::parse("shift -1 1"),
                                            .layers = {784, 12, 10}});
  ASSERT_EQ(report.rows.size(), 15u) << "every epoch";
  for (int epoch = 1; epoch <= 15; ++epoch) {
    const StudyRow& row = report.rows[static_cast<std::size_t>(epoch) - 1];
    EXPECT_EQ(row.case_name, "120 images, 1 seed");
    EXPECT_EQ(row.epoch, epoch);
    EXPECT_NEAR(row.value("lead"), row.value("augmented") - row.value("plain"), 1e-12);
  }
  std::vector<std::string> settings;
  for (const Fact& fact : report.settings) settings.push_back(fact.name + " " + fact.value);
  EXPECT_EQ(settings, (std::vector<std::string>{"data small", "augment shift -1 1", "layers 784,12,10"}));
  for (const char* const part : {"Perceptrons 784,12,10", "on small", "(shift -1 1)"})
    EXPECT_NE(report.introduction.find(part), std::string::npos) << part << "\n" << report.introduction;
}

TEST(StudyAugment, LimitAboveTheData_Throws) {
  const TempFolder folder;
  write_small_digits(folder / "small");
  EXPECT_EQ(error_text([&] { study_augment({.data = (folder / "small").string(), .limit = 301}); }),
            "[study augment] expected a limit of at most 300 training images of small, got 301");
}

TEST(StudyAugment, UnknownData_Throws) {
  EXPECT_EQ(error_text([] { study_augment({.data = "nowhere"}); }),
            "[train] expected one of " + datasets().list() +
                " or a folder with idx files or photographs, got 'nowhere'");
}

}  // namespace
}  // namespace tandem
