// The cases of a sweep, and findings and plots for synthetic rows.
#include "tandem/study/kernel_sweep.h"

#include <gtest/gtest.h>

#include "tandem/study/correlation.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

using Sentences = std::vector<std::string>;

StudyRow row(const char* name, const char* version, double ms, double spread_ms = 0) {
  return {.case_name = name,
          .version = version,
          .device = "cpu",
          .figures = {{"median_ms", ms}, {"min_ms", ms - spread_ms}, {"max_ms", ms + spread_ms}}};
}

TEST(KernelSize, OneNumber_IsSquare) {
  EXPECT_EQ(kernel_cases({"8x8 f32", "9x9 f64"}, {parse_kernel_size("5"), parse_kernel_size("3x7")}),
            (Sentences{"8x8 f32 5x5", "8x8 f32 3x7", "9x9 f64 5x5", "9x9 f64 3x7"}));
}

TEST(KernelSize, InvalidText_Throws) {
  for (const char* const text : {"", "0", "-3", "3x", "x3", "3x3x3", "three", "3 ", "65537", "3x65537"})
    EXPECT_EQ(error_text([&] { parse_kernel_size(text); }),
              "[study correlation] expected a kernel size such as 5 or 3x5, at most 65536, got '" +
                  std::string(text) + "'");
}

TEST(KernelFindings, Growth_ComparesSmallestAndLargestKernel) {
  EXPECT_EQ(
      kernel_findings({row("8x8 f32 7x7", "simd", 12), row("8x8 f32 3x3", "simd", 1),
                       row("8x8 f32 5x5", "simd", 30), row("8x8 f32 3x3", "parallel", 2, 1),
                       row("8x8 f32 7x7", "parallel", 3, 1), row("8x8 f32 3x3", "reference", 4),
                       row("8x8 f32 5x5", "reference", 10), row("9x9 f32 3x3", "simd", 1)}),
      (Sentences{"Time of 8x8 f32, from 3x3 to 7x7, 5.44 times the weights: simd 12 times as long, parallel "
                 "not clearly longer or shorter.",
                 "Time of 8x8 f32, from 3x3 to 5x5, 2.78 times the weights: reference 2.5 times as long."}));
}

TEST(KernelFindings, WrongRows_AreIgnored) {
  std::vector<StudyRow> rows{row("8x8 f32 3x3", "simd", 1), row("8x8 f32 5x5", "simd", 2)};
  rows[1].agrees = false;
  EXPECT_EQ(kernel_findings(rows), Sentences{});
}

TEST(KernelPlots, OneLinePerVersion_OverTheSide) {
  std::vector<StudyRow> rows{row("8x8 f32 5x5", "simd", 3, 1),  row("8x8 f32 3x3", "simd", 1),
                             row("8x8 f32 7x7", "simd", 6),     row("8x8 f32 3x3", "parallel", 2),
                             row("8x8 f32 3x3", "parallel", 1), row("9x9 f32 3x3", "simd", 1)};
  rows[3].threads = 1;
  rows[4].threads = 2;
  const std::vector<Plot> plots = kernel_plots(rows);
  ASSERT_EQ(plots.size(), 1u) << "one kernel is no sweep";
  EXPECT_EQ(plots[0].title, "Time over the kernel size: 8x8 f32");
  EXPECT_EQ(plots[0].x_label, "rows and columns of the kernel");
  EXPECT_TRUE(plots[0].log_x && plots[0].log_y);
  ASSERT_EQ(plots[0].series.size(), 2u);
  EXPECT_EQ(plots[0].series[0].name, "simd");
  EXPECT_EQ(plots[0].series[0].x, (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(plots[0].series[0].y, (std::vector<double>{1, 3, 6}));
  EXPECT_EQ(plots[0].series[0].high, (std::vector<double>{1, 4, 6}));
  EXPECT_EQ(plots[0].series[1].y, std::vector<double>{1}) << "the fastest thread count";
}

TEST(KernelPlots, KernelThatIsNotSquare_IsPlottedByItsWeights) {
  const std::vector<Plot> plots = kernel_plots(
      {row("8x8 f32 3x3", "simd", 1), row("8x8 f32 3x5", "simd", 2), row("8x8 f32 1x31", "simd", 3)});
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].x_label, "weights of the kernel");
  EXPECT_EQ(plots[0].series[0].x, (std::vector<double>{9, 15, 31}));
}

TEST(StudyCorrelation, Kernels_AreMeasuredWithEverySize) {
  const StudyReport report = study_correlation({.quick = true,
                                                .devices = {cpu_device},
                                                .cases = {"20x30 f32", "7x7 f64"},
                                                .versions = {Version::reference, Version::simd},
                                                .kernels = {{3, 3}, {5, 5}, {3, 9}}});
  Sentences cases;
  for (const StudyRow& one : report.rows) {
    EXPECT_TRUE(one.agrees) << one.case_name;
    if (one.version == "simd") cases.push_back(one.case_name);
  }
  EXPECT_EQ(cases, (Sentences{"20x30 f32 3x3", "20x30 f32 5x5", "20x30 f32 3x9", "7x7 f64 3x3", "7x7 f64 5x5",
                              "7x7 f64 3x9"}));
  std::vector<std::string> titles;
  for (const Plot& plot : report.plots) titles.push_back(plot.title);
  EXPECT_EQ(
      titles,
      (Sentences{"Time over the kernel size: 20x30 f32", "Share of peak over the kernel size: 20x30 f32",
                 "Time over the kernel size: 7x7 f64", "Share of peak over the kernel size: 7x7 f64"}))
      << "no bars with the same figures";
}

}  // namespace
}  // namespace tandem
