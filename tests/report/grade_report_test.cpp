#include "tandem/report/grade_report.h"

#include <gtest/gtest.h>

#include "tandem/report/grade_json.h"
#include "tandem/report/grade_page.h"
#include "tandem/report/grade_text.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

GradeReport sample(const std::string& student = "ada <b>") {
  GradedCase wrong{.name = "1x1 i32", .of = 5, .problem = "1 of 1 elements is wrong"};
  wrong.pictures = {{"expected", "png"}};
  const GradedCase slow{
      .name = "9x9 i32",
      .points = 5,
      .of = 5,
      .time =
          GradedTime{.student_ms = 4, .reference_ms = 2, .ratio = 2, .spread = 0.1, .points = 3, .of = 10}};
  GradedCase noisy = slow;
  noisy.name = "8x8 i32";
  noisy.time->too_noisy = true;
  noisy.time->spread = 0.4;
  GradeReport report{.student = student,
                     .profile = "p",
                     .title = "The course",
                     .profile_hash = "ab",
                     .submission_hash = "cd"};
  report.seed = 123456789;
  report.full_up_to = 1.2;
  report.zero_from = 10;
  report.parts = {
      {.name = "max",
       .title = "Maximum",
       .task = "max(a, b)",
       .file = "max.c",
       .command = "cc max.c",
       .reference = "simd, 1 thread",
       .points = 13,
       .of = 35,
       .not_graded = 10,
       .cases = {wrong, slow, noisy}},
      {.name = "xxt", .title = "Product", .task = "xxt(x)", .problem = "There is no file.", .of = 5}};
  report.machine = {{"CPU", "some"}};
  report.provenance = {
      {"command", "tandem grade --seed 123456789"}, {"seed", "123456789"}, {"date", "today"}};
  return report;
}

TEST(GradeReport, Points_WithoutWhatWasNotGraded) {
  const GradeReport report = sample();
  EXPECT_EQ(report.points(), 13);
  EXPECT_EQ(report.not_graded(), 10);
  EXPECT_EQ(report.of(), 30);
}

TEST(GradeReport, EveryLostPoint_HasASentence) {
  const std::vector<LostPoints> lost = lost_points(sample().parts[0]);
  ASSERT_EQ(lost.size(), 3u);
  EXPECT_EQ(lost[0].sentence, "1x1 i32: 1 of 1 elements is wrong: 0 of 5 points.");
  EXPECT_EQ(lost[0].pictures.size(), 1u);
  EXPECT_EQ(lost[1].sentence,
            "9x9 i32: took 2.00 times as long as the reference (4.00 ms against 2.00 ms): 3 of 10 points for "
            "speed, which are in proportion to the correct cases.");
  EXPECT_EQ(lost[2].sentence,
            "8x8 i32: not graded, machine too noisy: the reference's own times differ by 40.0 %.");
  EXPECT_TRUE(lost[2].not_graded);
}

TEST(GradeReport, WrongCaseThatIsTimed_LosesItsPointsForSpeedToo) {
  GradedPart part = sample().parts[0];
  part.cases = {
      {.name = "1x1 i32", .of = 5, .problem = "wrong", .pictures = {}, .time = GradedTime{.of = 10}}};
  const std::vector<LostPoints> lost = lost_points(part);
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[1].sentence, "1x1 i32: not timed, because a result is wrong: 0 of 10 points for speed.");
}

TEST(GradeReport, SameProblemInEveryCase_IsOneSentence) {
  GradedPart part{.name = "max", .of = 20};
  part.cases = {{.name = "1x1 i32", .of = 5, .problem = "a.c has no function tandem_max"},
                {.name = "9x9 i32", .of = 5, .problem = "a.c has no function tandem_max"}};
  std::vector<LostPoints> lost = lost_points(part);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].sentence, "All 2 cases: a.c has no function tandem_max: 0 of 20 points.");
  part.cases[1].problem = "another";
  EXPECT_EQ(lost_points(part).size(), 2u);
}

TEST(GradeReport, FormatPoints_OneDecimalAtMost) {
  EXPECT_EQ(format_points(12), "12");
  EXPECT_EQ(format_points(12.25), "12.3");
  EXPECT_EQ(format_points(11.96), "12");
}

TEST(GradeJson, RoundTrip_KeepsEverythingButPictures) {
  const GradeReport report = sample();
  const std::string text = to_json_text(report);
  const GradeReport read = parse_grade(text, "a.json");
  EXPECT_EQ(to_json_text(read), text);
  EXPECT_EQ(read.seed, 123456789u);
  EXPECT_EQ(read.submission_hash, "cd");
  EXPECT_EQ(read.parts[0].cases[1].time->ratio, 2);
  EXPECT_TRUE(read.parts[0].cases[0].pictures.empty());
}

TEST(GradeJson, OtherText_Throws) {
  EXPECT_NE(error_text([] {
              parse_grade("{}", "a.json");
            }).find("[grade] a.json: expected the result of a grading"),
            std::string::npos);
  error_text([] { parse_grade("[", "a.json"); });
}

TEST(GradePage, Student_SeesEveryLossAndNoSeed) {
  const std::string page = grade_page(sample());
  EXPECT_NE(page.find("ada &lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("<b>13</b>"), std::string::npos);
  EXPECT_NE(page.find("1x1 i32: 1 of 1 elements is wrong"), std::string::npos);
  EXPECT_NE(page.find("data:image/png;base64,cG5n"), std::string::npos);
  EXPECT_NE(page.find("There is no file."), std::string::npos);
  EXPECT_NE(page.find("machine too noisy"), std::string::npos);
  EXPECT_EQ(page.find("123456789"), std::string::npos);
}

TEST(GradePage, SubmissionThatCannotBeOpened_SaysWhy) {
  GradeReport report = sample();
  report.problem = "a.zip: is empty";
  EXPECT_NE(grade_page(report).find("The submission cannot be graded: a.zip: is empty."), std::string::npos);
}

TEST(ClassPage, Rows_CanBeSortedByEveryColumn) {
  GradeReport bob = sample("bob");
  bob.parts[0].points = 20;
  const std::vector<ClassEntry> entries{{sample("ada"), "class/ada.html"}, {bob, "class/bob.html"}};
  const std::string page = class_page(entries, "Class", {});
  EXPECT_NE(page.find("<tr style=\"--o0:0;--o1:1;--o2:1;--o3:0;\"><td><a href=\"class/ada.html\">ada</a>"),
            std::string::npos);
  EXPECT_NE(page.find("<tr style=\"--o0:1;--o1:0;--o2:0;--o3:1;\"><td><a href=\"class/bob.html\">bob</a>"),
            std::string::npos);
  EXPECT_NE(page.find("#sort-3:checked~.class tbody tr{order:var(--o3)}"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(ClassPage, WithoutStudents_IsAPage) {
  EXPECT_NE(class_page({}, "Class", {}).find("<h1>Class</h1>"), std::string::npos);
}

TEST(GradeText, FitsTheTerminal) {
  const std::string text = grade_text(sample("ada"), {.width = 80});
  EXPECT_TRUE(
      text.starts_with("ada: 13 of 30 points (p)\n10 more points were not graded: machine too noisy.\n"))
      << text;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 90u);  // bytes: some characters have several
    begin = end + 1;
  }
  const std::vector<GradeReport> both{sample("ada"), sample("bob")};
  EXPECT_NE(class_text(both, {.width = 80}).find("bob"), std::string::npos);
}

}  // namespace
}  // namespace tandem
