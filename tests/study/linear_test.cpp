// Cases, findings and rows of the study of a linear layer's products.
#include "tandem/study/linear.h"

#include <gtest/gtest.h>

#include "tandem/study/studies.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(LinearCase, ValidText_GivesSizesBatchAndProduct) {
  const LinearCase all = parse_linear_case("784x200 batch 16");
  EXPECT_EQ(all.inputs, 784);
  EXPECT_EQ(all.outputs, 200);
  EXPECT_EQ(all.batch, 16);
  EXPECT_EQ(all.product, "");
  EXPECT_EQ(all.layer(), "784x200");
  for (const char* product : {"Y", "dX", "dW"})
    EXPECT_EQ(parse_linear_case("1x2 batch 3 " + std::string(product)).product, product);
}

TEST(LinearCase, InvalidText_ThrowsWithExpected) {
  for (const char* text :
       {"", "784x200", "784 batch 16", "784x200x10 batch 16", "784x200 batch", "784x200 batch ",
        "784x200 batch 0", "784x200 batch -1", "0x200 batch 16", "784x0 batch 16", "784x200 batch 16 ",
        " 784x200 batch 16", "784x200  batch 16", "784x200 batch 16 dB", "784x200 batch 16 dW ",
        "784x200 batch 1e3", "784,200,10 batch 16", "784x200 f32", "99999999999999999999x1 batch 1"})
    EXPECT_EQ(
        error_text([&] { parse_linear_case(text); }),
        "[study linear] expected a case such as \"784x200 batch 16\" or \"784x200 batch 16 dW\", got \"" +
            std::string(text) + "\"");
}

TEST(LinearCase, TooLargeForMemory_Throws) {
  const std::string error =
      error_text([] { study_linear({.cases = {"1000000000x1000000000 batch 1000000000"}}); });
  EXPECT_EQ(error.rfind("[study linear] case \"1000000000x1000000000 batch 1000000000 Y\" needs about", 0),
            0u)
      << error;
}

TEST(StudyLinear, CaseWithoutProduct_MeasuresAllThree) {
  const StudyReport report = study_linear({.quick = true,
                                           .devices = {cpu_device},
                                           .cases = {"6x4 batch 5", "6x4 batch 50 dX"},
                                           .versions = {Version::reference, Version::parallel}});
  std::vector<std::string> measured;
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.case_name;
    measured.push_back(row.case_name + " " + row.version);
  }
  EXPECT_EQ(measured, (std::vector<std::string>{"6x4 batch 5 Y reference", "6x4 batch 5 Y parallel",
                                                "6x4 batch 5 dX reference", "6x4 batch 5 dX parallel",
                                                "6x4 batch 5 dW reference", "6x4 batch 5 dW parallel",
                                                "6x4 batch 50 dX reference", "6x4 batch 50 dX parallel"}));
  // 2 · 5 · 6 · 4 operations and (5 · 6 + 6 · 4 + 5 · 4) · 4 bytes.
  const StudyRow& first = report.rows.front();
  EXPECT_NEAR(first.value("gflop_per_s"), 240 / first.value("median_ms") / 1e6, 1e-9);
  EXPECT_NEAR(first.value("gb_per_s"), 296 / first.value("median_ms") / 1e6, 1e-9);
}

StudyRow row(const char* case_name, const char* version, double min_ms, double median_ms, double max_ms,
             double gflop_per_s) {
  return {
      .case_name = case_name,
      .version = version,
      .device = "cpu",
      .figures = {
          {"median_ms", median_ms}, {"min_ms", min_ms}, {"max_ms", max_ms}, {"gflop_per_s", gflop_per_s}}};
}

using Sentences = std::vector<std::string>;

TEST(LinearFindings, ThreeProducts_AreNamedWithTheirTimes) {
  EXPECT_EQ(linear_findings({row("8x4 batch 2 Y", "parallel", 1, 1, 1, 5),
                             row("8x4 batch 2 dX", "parallel", 2, 2, 2, 5)}),
            Sentences{})
      << "dW is missing";
  EXPECT_EQ(linear_findings({row("8x4 batch 2 Y", "parallel", 1, 1, 1, 5),
                             row("8x4 batch 2 dX", "parallel", 2, 2, 2, 5),
                             row("8x4 batch 2 dW", "parallel", 0.5, 0.5, 0.5, 5)}),
            Sentences{"The three products need the same number of operations; parallel takes 1.00 ms for "
                      "Y, 2.00 ms for dX and 500 µs for dW (8x4 batch 2)."});
}

TEST(LinearFindings, Batches_AreComparedByRate) {
  // Ten times the samples in five times the time.
  EXPECT_EQ(linear_findings({row("8x4 batch 20 Y", "parallel", 4, 5, 6, 10),
                             row("8x4 batch 2 Y", "parallel", 0.9, 1, 1.1, 5)}),
            Sentences{"The larger batch gives 2.0 times the rate of the smaller: 5 GFLOP/s with a batch of 2 "
                      "and 10 with 20 (parallel, Y of 8x4)."});
  EXPECT_EQ(linear_findings({row("8x4 batch 2 Y", "parallel", 0.4, 1, 1.1, 5),
                             row("8x4 batch 20 Y", "parallel", 4, 5, 6, 10)}),
            Sentences{"The rates with both batch sizes are not clearly different, their spreads overlap: 5 "
                      "GFLOP/s with a "
                      "batch of 2 and 10 with 20 (parallel, Y of 8x4)."})
      << "the spreads per sample overlap";
  EXPECT_EQ(
      linear_findings(
          {row("8x4 batch 2 Y", "parallel", 1, 1, 1, 5), row("8x4 batch 20 Y", "parallel", 10, 10, 10, 5)}),
      Sentences{"The batch size makes no difference to the rate: 5 GFLOP/s with a batch of 2 and 5 with 20 "
                "(parallel, Y of 8x4)."});
}

TEST(LinearFindings, OtherLayerOrProductOrVersion_IsNotCompared) {
  EXPECT_EQ(linear_findings(
                {row("8x4 batch 2 Y", "parallel", 1, 1, 1, 5), row("9x4 batch 20 Y", "parallel", 1, 1, 1, 5),
                 row("8x4 batch 30 dX", "parallel", 1, 1, 1, 5), row("8x4 batch 40 Y", "simd", 1, 1, 1, 5)}),
            Sentences{});
}

TEST(StudyLinear, Registry_ChecksItsCases) {
  EXPECT_EQ(error_text([] { check_case(studies().get("linear"), "784x200"); }),
            "[study linear] expected a case such as \"784x200 batch 16\" or \"784x200 batch 16 dW\", got "
            "\"784x200\"");
}

}  // namespace
}  // namespace tandem
