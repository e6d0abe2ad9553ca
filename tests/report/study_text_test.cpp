#include "tandem/report/study_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "report_fixture.h"
#include "tandem/text/utf8.h"
#include "tests/text/lines.h"

namespace tandem {
namespace {

TEST(StudyText, ShowsFiguresWithUnitsGroupedByCase) {
  const std::string text = study_text(sample_report());
  for (const char* part : {"Element-wise maximum\n", "1000×1000 i32\n", "33×7 f64\n", "2.50 ms", "5.00 µs",
                           "4.50–6.50 µs", "600 µs", "×500", "2400", "57.0 %", "All versions agree exactly.",
                           "• Memory bandwidth is the limit.\n"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_FALSE(contains(text, "WRONG"));
  EXPECT_FALSE(contains(text, "\x1b"));
}

TEST(StudyText, OmitsEmptyColumns) {
  StudyReport report = sample_report();
  for (StudyRow& row : report.rows) row.figures["gb_per_s"] = row.figures["with_copies_ms"] = std::nullopt;
  const std::string text = study_text(report);
  EXPECT_FALSE(contains(text, "GB/s"));
  EXPECT_FALSE(contains(text, "copies"));
  EXPECT_TRUE(contains(text, "GFLOP/s"));
}

TEST(StudyText, SamplesPerSecondAreRoundedAndGrouped) {
  StudyReport report = sample_report();
  EXPECT_FALSE(contains(study_text(report), "samples/s"));
  report.rows[0].figures["samples_per_s"] = 12345678;
  report.rows[1].figures["samples_per_s"] = 987.6;
  const std::string text = study_text(report);
  for (const char* part : {"samples/s", "12,300,000", " 988"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

TEST(StudyText, ShowsWorkerColumns) {
  StudyReport report = sample_report();
  report.rows[1].workers = 2;
  report.rows[1].figures["waited_ms"] = 0.25;
  report.rows[1].figures["efficiency"] = 0.875;
  report.rows[1].agrees = false;
  const std::string text = study_text(report, {.width = 140});
  for (const char* part : {"workers", "waited", "250 µs", "efficiency", "87.5 %",
                           "WRONG: cuda with 2 workers on cuda:0 disagrees with the reference"})
    EXPECT_TRUE(contains(text, part)) << part << '\n' << text;
}

TEST(StudyText, MarksAndExplainsWrongRows) {
  StudyReport report = sample_report();
  report.rows[1].agrees = false;
  report.rows[1].figures["max_error"] = 0.25;
  const std::string text = study_text(report);
  EXPECT_EQ(count(text, "WRONG"), 2) << text;  // in the table and in the sentence
  EXPECT_TRUE(contains(text, "error is 0.250.")) << text;
  EXPECT_FALSE(contains(text, "agree exactly"));
  EXPECT_FALSE(contains(text, "…")) << text;  // all eleven columns fit
}

TEST(StudyText, LongNames_StayWithinTheWidth) {
  StudyReport report = sample_report();
  report.introduction =
      std::string(30, 'w') + " " + std::string(300, 'q') + " and more words that need wrapping";
  report.rows[0].version = "a-version-with-a-very-long-name-漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字";
  report.rows[1].device = std::string(80, 'd');
  report.rows[1].case_name = std::string(200, 'c');
  report.rows[1].agrees = false;
  for (StudyRow& row : report.rows) row.figures["median_ms"] = 123456789.0;
  for (const int width : {60, 80, 100})
    for (const std::string& line : lines_of(study_text(report, {.width = width})))
      EXPECT_LE(display_width(line), width) << line;
  for (const std::string& line : lines_of(machine_text({{"CPU", std::string(150, 'z')}, {"cores", "2"}})))
    EXPECT_LE(display_width(line), 100) << line;
}

TEST(StudyText, EmptyStudy_IsOnlyItsTitle) {
  EXPECT_EQ(study_text({.study = "max",
                        .title = "Maximum",
                        .machine = {},
                        .introduction = {},
                        .rows = {},
                        .findings = {},
                        .plots = {}}),
            "Maximum\n\n");
}

}  // namespace
}  // namespace tandem
