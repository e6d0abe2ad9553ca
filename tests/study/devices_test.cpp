// The study on tiny networks.
#include "tandem/study/devices.h"

#include <gtest/gtest.h>

#include "tandem/core/parallel.h"

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(StudyDevices, EveryDevice_AgreesAndIsMeasured) {
  const std::vector<std::string> cases{"784,8,10 batch 256", "784,10 batch 1000", "784,20,20,10 batch 500"};
  const StudyReport report = study_devices({.quick = true, .cases = cases});
  EXPECT_EQ(report.study, "devices");
  ASSERT_EQ(report.rows.size(), cases.size() * static_cast<std::size_t>(1 + cuda_device_count()));
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.case_name << " " << row.device << " "
                            << row.figures["max_error"].value_or(0);
    EXPECT_GT(row.figures["max_error"].value_or(0), 0);
    EXPECT_LE(row.value("min_ms"), row.value("median_ms"));
    EXPECT_LE(row.value("median_ms"), row.value("max_ms"));
    EXPECT_NEAR(row.value("samples_per_s"), 6e7 / row.value("median_ms"), 1e-6 * row.value("samples_per_s"));
    EXPECT_EQ(row.version, row.device == "cpu" ? "cpu" : "cuda");
    EXPECT_EQ(row.figures["with_copies_ms"].has_value(), row.device != "cpu");
    EXPECT_TRUE(row.figures["speedup"]);
    EXPECT_GT(row.figures["share_of_peak"].value_or(0), 0);
    EXPECT_FALSE(row.engine.empty());
  }
  EXPECT_FALSE(report.plots.empty());
  if (cuda_device_count() == 0) {
    EXPECT_EQ(report.findings.front(), "No GPU was measured: " + why_no_cuda() + ".");
  }
}

TEST(StudyDevices, Threads_AreSweptOnTheCpu) {
  const StudyReport report = study_devices(
      {.quick = true, .devices = {cpu_device}, .cases = {"784,20,10 batch 128"}, .threads = {3, 1, 3}});
  ASSERT_EQ(report.rows.size(), 2u);
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.value("max_error");
    // As many as were asked for: the engine does not look for a faster number.
    EXPECT_EQ(row.engine,
              row.threads == 1 ? "perceptron on the CPU, 1 thread" : "perceptron on the CPU, 3 threads");
    EXPECT_EQ(row.note, *row.threads > usable_cpus() ? "oversubscribed" : "");
    EXPECT_DOUBLE_EQ(row.value("speedup"), report.rows[0].value("median_ms") / row.value("median_ms"));
  }
  EXPECT_EQ(report.rows[0].threads, 1);
  EXPECT_EQ(report.plots.back().title, "Scaling with threads");
}

TEST(StudyDevices, ConvolutionalNetwork_AgreesAndIsMeasured) {
  // On a GPU the default case, too. The CPU needs seconds for its epoch.
  const std::string name = cuda_device_count() > 0 ? "cnn batch 128" : "cnn batch 32";
  const StudyReport report = study_devices({.quick = true, .cases = {name}});
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.device << " " << row.figures["max_error"].value_or(0);
    EXPECT_GT(row.value("median_ms"), 0);
    EXPECT_GT(row.figures["gflop_per_s"].value_or(0), 0);
  }
}

TEST(StudyDevices, CaseTooLargeForMemory_Throws) {
  const std::string text =
      error_text([] { study_devices({.quick = true, .cases = {"784,4000000,4000000,10 batch 16"}}); });
  EXPECT_EQ(text.find("[study devices] case \"784,4000000,4000000,10 batch 16\" needs about "), 0u) << text;
}

}  // namespace
}  // namespace tandem
