// Learning curves with known means and spreads.
#include "tandem/study/augment_findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tandem/report/study_rows.h"
#include "tandem/report/study_text.h"

namespace tandem {
namespace {

AugmentResult two_seeds() {
  return {.augment_case = {.images = 1000, .epochs = 5, .seeds = 2},
          .device = "cpu",
          .engine = "some engine",
          .plain = {{0.5, 0.7, 0.8, 0.85, 0.86}, {0.6, 0.7, 0.82, 0.85, 0.88}},
          .augmented = {{0.4, 0.6, 0.82, 0.88, 0.90}, {0.4, 0.7, 0.84, 0.90, 0.94}},
          .plain_epoch = {.median_ms = 10, .min_ms = 9, .max_ms = 11},
          .augmented_epoch = {.median_ms = 12.5, .min_ms = 12, .max_ms = 13}};
}

std::string cell(const StudyRow& row, std::string_view key) {
  return study_cell(row, *std::ranges::find(study_fields, key, &StudyField::key));
}

TEST(AugmentFindings, Rows_HaveMeanSpreadAndLead) {
  const std::vector<StudyRow> rows = augment_rows(two_seeds());
  ASSERT_EQ(rows.size(), 5u) << "every epoch";
  EXPECT_EQ(rows[0].case_name, "1,000 images, 2 seeds");
  EXPECT_EQ(rows[0].epoch, 1);
  EXPECT_DOUBLE_EQ(rows[0].value("plain"), 0.55);
  EXPECT_NEAR(rows[0].value("plain_spread"), 0.0707107, 1e-6);
  EXPECT_DOUBLE_EQ(rows[0].value("augmented"), 0.4);
  EXPECT_DOUBLE_EQ(rows[0].value("lead"), -0.15);
  const StudyRow& last = rows.back();
  EXPECT_EQ(last.value("plain_ms"), 10);
  EXPECT_EQ(last.value("augmented_ms"), 12.5);
  EXPECT_EQ(cell(last, "epoch"), "5");
  EXPECT_EQ(cell(last, "plain"), "87.00 ± 1.41 %");
  EXPECT_EQ(cell(last, "augmented"), "92.00 ± 2.83 %");
  EXPECT_EQ(cell(last, "lead"), "+5.00 ± 1.41") << "paired: 4 and 6 points";
  EXPECT_TRUE(agreement_sentences(rows).empty()) << "accuracies are not checked for agreement";
  EXPECT_EQ(rows_by_case(rows)[0].fastest, -1);
}

TEST(AugmentFindings, Table_HasOneRowPerEpoch) {
  StudyReport report;
  report.rows = augment_rows(two_seeds());
  std::vector<std::string> headers;
  for (const StudyField& column : study_columns(report.rows)) headers.emplace_back(column.header);
  EXPECT_EQ(headers, (std::vector<std::string>{"device", "epoch", "plain", "augmented", "lead"}));
  const std::string text = study_text(report);
  for (const char* const line : {"1  55.00 ± 7.07 %  40.00 ± 0.00 %  -15.00 ± 7.07\n",
                                 "2  70.00 ± 0.00 %  65.00 ± 7.07 %   -5.00 ± 7.07\n",
                                 "4  85.00 ± 0.00 %  89.00 ± 1.41 %   +4.00 ± 1.41\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(AugmentFindings, OneSeed_HasNoSpread) {
  AugmentResult result = two_seeds();
  result.augment_case.seeds = 1;
  result.plain.pop_back();
  result.augmented.pop_back();
  const std::vector<StudyRow> rows = augment_rows(result);
  EXPECT_FALSE(rows.back().figures["plain_spread"] || rows.back().figures["lead_spread"]);
  EXPECT_EQ(cell(rows.back(), "lead"), "+4.00");
  EXPECT_EQ(rows.back().case_name, "1,000 images, 1 seed");
}

TEST(AugmentFindings, Finding_SaysWhichIsBetterAndSinceWhen) {
  EXPECT_EQ(
      augment_finding(two_seeds()),
      "1,000 images: after 5 epochs, training reaches 92.00 % with augmentation and 87.00 % without: "
      "+5.00 ± 1.41 points, better with 2 of 2 seeds, on average from epoch 3 on. The last fifth of the "
      "epochs changed the accuracy by +2.00 points without augmentation and +3.00 with. The median epoch "
      "took "
      "10.0 ms without augmentation and 12.5 ms with.");
  AugmentResult behind = two_seeds();
  std::swap(behind.plain, behind.augmented);
  EXPECT_NE(augment_finding(behind).find("-5.00 ± 1.41 points, better with 0 of 2 seeds."),
            std::string::npos);
}

TEST(AugmentFindings, DecayingRate_IsInTheName) {
  AugmentResult result = two_seeds();
  result.augment_case.schedule = ScheduleKind::cosine;
  EXPECT_EQ(augment_rows(result)[0].case_name, "1,000 images, decaying rate, 2 seeds");
  EXPECT_EQ(augment_plot(result).title, "1,000 images, decaying rate");
}

TEST(AugmentFindings, Plot_ShowsBothMeans) {
  const Plot plot = augment_plot(two_seeds());
  EXPECT_EQ(plot.title, "1,000 images");
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(plot.series[0].x, (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_DOUBLE_EQ(plot.series[0].y[4], 0.87);
  EXPECT_DOUBLE_EQ(plot.series[1].y[4], 0.92);
}

}  // namespace
}  // namespace tandem
