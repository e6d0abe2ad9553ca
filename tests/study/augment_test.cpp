#include "tandem/study/augment.h"

#include <gtest/gtest.h>

#include "tandem/data/dataset_registry.h"
#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(StudyAugment, PlainAndAugmented_DifferOnlyInImages) {
  const DataSplit data = digits_split(300, 100);
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
  const DataSplit data = digits_split(100, 50);
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
  ASSERT_EQ(report.rows.size(), 4u) << "plain and augmented, 1,000 and 10,000 images";
  EXPECT_EQ(report.rows[3].case_name, "10,000 images, 1 seed");
  EXPECT_GT(report.rows[2].value("accuracy"), report.rows[0].value("accuracy")) << "ten times the steps";
  EXPECT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.plots.size(), 2u);
}

TEST(StudyAugment, UnknownData_Throws) {
  EXPECT_EQ(error_text([] { study_augment({.data = "nowhere"}); }),
            "[train] expected one of " + datasets().list() +
                " or a folder with idx files or photographs, got 'nowhere'");
}

}  // namespace
}  // namespace tandem
