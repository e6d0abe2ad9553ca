// Files of studies side by side.
#include "tandem/study/study_comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/report/json.h"
#include "tests/report/report_fixture.h"

namespace tandem {
namespace {

// The sample report, with the times of the version cuda divided by `speed`.
ComparedStudies studies(const std::string& name, double speed) {
  StudyReport report = sample_report();
  report.provenance = {{"commit", name}};
  for (StudyRow& row : report.rows)
    if (row.version == "cuda")
      for (const Figure figure : {Figure("median_ms"), Figure("min_ms"), Figure("max_ms")})
        row.figures[figure] = row.value(figure) / speed;
  return {name, {report}};
}

TEST(StudyJson, Studies_AreReadAgain) {
  const StudyReport report = studies("a", 1).studies[0];
  const std::vector<StudyReport> read = parse_studies(to_json_text(report), "a.json");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(to_json_text(read[0]), to_json_text(report));
  EXPECT_EQ(read[0].rows[1].threads, 4);
  EXPECT_EQ(read[0].rows[1].value("min_ms"), 0.0045);
  const std::vector<StudyReport> two{report, report};
  EXPECT_EQ(parse_studies(to_json_text(std::span<const StudyReport>(two)), "b.json").size(), 2U);
}

TEST(StudyJson, OtherText_ErrorNamesTheFile) {
  for (const char* const text : {"", "{}", "[1, 2]", "{\"studies\": 3}", "{\"study\": \"max\"}",
                                 "{\"study\": \"max\", \"rows\": [{\"median_ms\": \"fast\"}]}"})
    EXPECT_THROW(parse_studies(text, "a.json"), Error) << text;
}

TEST(StudyComparison, ClearDifference_HasARatio) {
  const std::vector<ComparedStudies> files{studies("old.json", 1), studies("new.json", 2)};
  const std::string text = study_comparison_text(files, {.width = 80});
  for (const char* const part : {"A  old.json\n", "B  new.json\n", "1000×1000 i32", "cuda with 4 threads",
                                 "5.00 µs", "2.50 µs", "×2.00", "≈", "commit"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_TRUE(contains(text, "B is faster than A in 2 of 4 measurements")) << text;
  EXPECT_TRUE(contains(text, "and slower in 0")) << text;
  const auto json = nlohmann::json::parse(study_comparison_json(files, {}));
  ASSERT_EQ(json["rows"].size(), 4U);
  EXPECT_EQ(json["rows"][1]["speed"][1], 2);
  EXPECT_TRUE(json["rows"][0]["speed"][1].is_null()) << "the reference is the same";
  EXPECT_EQ(body_fault(study_comparison_page(files, {})), "");
}

TEST(StudyComparison, OverlappingSpreads_HaveNone) {
  const std::vector<ComparedStudies> files{studies("old.json", 1), studies("new.json", 1.1)};
  const std::string text = study_comparison_text(files, {.width = 80});
  EXPECT_TRUE(contains(text, "B is faster than A in 0 of 4 measurements, and slower in 0.")) << text;
  EXPECT_FALSE(contains(text, "×1.1")) << text;
}

TEST(StudyComparison, WrongAndUnsharedRows_AreLeftOut) {
  std::vector<ComparedStudies> files{studies("old.json", 1), studies("new.json", 0.5)};
  files[1].studies[0].rows[1].agrees = false;
  files[1].studies[0].rows.pop_back();
  const auto json = nlohmann::json::parse(study_comparison_json(files, {}));
  EXPECT_EQ(json["rows"].size(), 2U);  // the references
  files[1].studies.clear();
  EXPECT_EQ(nlohmann::json::parse(study_comparison_json(files, {}))["rows"].size(), 0U);
  EXPECT_EQ(body_fault(study_comparison_page(files, {})), "");
  EXPECT_FALSE(study_comparison_text(files, {.width = 80}).empty());
}

}  // namespace
}  // namespace tandem
