#include "tandem/study/augment.h"

#include <gtest/gtest.h>

#include "tandem/data/dataset_registry.h"
#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(StudyAugment, PlainAndAugmented_DifferOnlyInImages) {
  const DataSplit data = digits_split(300, 100);
  const AugmentResult result =
      compare_augmentation(data, {.images = 100, .epochs = 3, .seeds = 4}, {.devices = {cpu_device}});
  EXPECT_EQ(result.device, "cpu");
  for (const auto* curves : {&result.plain, &result.augmented}) {
    ASSERT_EQ(curves->size(), 4u);
    for (const AugmentResult::Curve& curve : *curves) EXPECT_EQ(curve.size(), 3u);
    EXPECT_NE((*curves)[0], (*curves)[1]) << "another seed uses other images";
  }
  EXPECT_NE(result.plain, result.augmented);
  const AugmentResult again =
      compare_augmentation(data, {.images = 100, .epochs = 3, .seeds = 4}, {.devices = {cpu_device}});
  EXPECT_EQ(result.plain, again.plain);
  EXPECT_EQ(result.augmented, again.augmented);
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
