// Case parsing, and the studies themselves on tiny cases.
#include "tandem/study/studies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(ParseCase, ValidText_GivesSizesTypeAndKernel) {
  const CaseName plain = parse_case(studies().get("max"), "4096x512 i32");
  EXPECT_EQ(plain.rows, 4096);
  EXPECT_EQ(plain.columns, 512);
  EXPECT_EQ(plain.type, "i32");
  EXPECT_EQ(plain.kernel_rows, 0);
  const CaseName kernel = parse_case(studies().get("correlation"), "7x9 f64 3x11");
  EXPECT_EQ(kernel.type, "f64");
  EXPECT_EQ(kernel.kernel_rows, 3);
  EXPECT_EQ(kernel.kernel_columns, 11);
}

TEST(ParseCase, EveryExample_IsValid) {
  for (const Study& study : studies().rows())
    if (study.kind == CaseKind::none)
      EXPECT_EQ(error_text([&] { check_case(study, "3x3 f32"); }),
                fmt::format("[study {}] expected no cases, got \"3x3 f32\"", study.name));
    else
      EXPECT_NO_THROW(check_case(study, study.example)) << study.name;
}

TEST(ParseCase, InvalidText_ThrowsWithExpected) {
  for (const char* text :
       {"", "10", "10x", "10x10", "10x10 ", "x10 i32", "0x10 i32", "-1x10 i32", "10x10  i32", "10x10 i32 ",
        "10x10 i32 3x3", " 10x10 i32", "1e3x10 i32", "10×10 i32", "99999999999999999999x1 i32"})
    EXPECT_EQ(error_text([&] { parse_case(studies().get("max"), text); }),
              "[study max] expected a case such as \"1000x1000 i32\", got \"" + std::string(text) + "\"");
  for (const char* text : {"10x10 f32", "10x10 f32 3", "10x10 f32 0x3", "10x10 f32 3x3 "})
    EXPECT_EQ(error_text([&] { parse_case(studies().get("correlation"), text); }),
              "[study correlation] expected a case such as \"1024x1024 f32 3x3\", got \"" +
                  std::string(text) + "\"");
  EXPECT_EQ(error_text([] { parse_case(studies().get("max"), "10x10 bf16"); }),
            "[study max] expected one of the types f32, f64, u8, i32, i64, got bf16");
  EXPECT_EQ(error_text([] { parse_case(studies().get("xxt"), "10x10 i32"); }),
            "[study xxt] expected one of the types f32, tf32, f64, got i32");
  EXPECT_EQ(error_text([] { parse_case(studies().get("correlation"), "10x10 i32 3x3"); }),
            "[study correlation] expected one of the types f32, f64, got i32");
}

TEST(FindStudy, UnknownName_Throws) {
  EXPECT_EQ(studies().get("xxt").name, "xxt");
  EXPECT_EQ(error_text([] { studies().get("XXT"); }),
            "[study] expected one of max, xxt, correlation, linear, devices, workers, augment, plates, "
            "cluster, got 'XXT'; did you mean 'xxt'?");
}

// Checks every version that can run here on arbitrary small sizes.
void expect_agreement(const char* study, const std::vector<std::string>& cases) {
  const StudyReport report = studies().get(study).run({.quick = true, .cases = cases});
  EXPECT_EQ(report.study, study);
  EXPECT_FALSE(report.title.empty() || report.introduction.empty() || report.machine.empty());
  EXPECT_EQ(report.rows.size(), cases.size() * static_cast<std::size_t>(3 + 2 * cuda_device_count()));
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.case_name << " " << row.version << " "
                            << row.figures["max_error"].value_or(0);
    EXPECT_GT(row.figures["share_of_peak"].value_or(0), 0);
    EXPECT_TRUE(row.figures["speedup"]);
    EXPECT_EQ(row.figures["gflop_per_s"].has_value(), std::string(study) != "max");
    EXPECT_EQ(row.figures["with_copies_ms"].has_value(), row.device != "cpu");
  }
  EXPECT_FALSE(report.findings.empty());
  EXPECT_FALSE(report.plots.empty());
}

TEST(Studies, MaxAgrees) {
  expect_agreement("max", {"17x33 i32", "1x1 u8", "40x3 f64", "9x9 i64", "5x70 f32"});
}

TEST(Studies, XxtAgrees) {
  expect_agreement("xxt", {"9x40 f32", "33x7 tf32", "1x1 f64", "50x50 f64"});
}

TEST(Studies, CorrelationAgrees) {
  expect_agreement("correlation", {"33x17 f32 3x3", "5x4 f32 9x7", "20x31 f64 2x4", "1x1 f64 1x1"});
}

TEST(Studies, LinearAgrees) {
  expect_agreement("linear", {"3x5 batch 2 Y", "17x9 batch 4 dX", "33x20 batch 7 dW", "1x1 batch 1 dW"});
}

}  // namespace
}  // namespace tandem
