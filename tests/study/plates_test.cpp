#include "tandem/study/plates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/core/error.h"
#include "tandem/data/image_folder.h"
#include "tandem/train/metrics.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

PlatesFlow small_flow() {
  return {.images_per_class = 7,
          .test_images = 10,
          .photo_size = 64,
          .image_size = 32,
          .epochs = 2,
          .batch_size = 4};
}

TEST(StudyPlates, Flow_FromFolderToPredictions) {
  const TempFolder folder;
  const PlatesFlow flow = small_flow();
  write_flow_plates(folder.path(), flow);
  const FlowResult result = run_plates_flow(folder.path(), flow, cpu_device);
  EXPECT_EQ(result.train, 10) << "images 1 to 5 of each class";
  EXPECT_EQ(result.validation, 4) << "images 0 and 6 of each class";
  EXPECT_TRUE(result.file_agrees);
  ASSERT_EQ(result.predictions.size(), 10u);
  for (const std::int32_t predicted : result.predictions) EXPECT_TRUE(predicted == 0 || predicted == 1);
  const std::vector<std::int32_t> labels = scan_image_folder(folder.path() / "test").labels;
  EXPECT_EQ(std::ranges::count(labels, 1), 5);
  EXPECT_DOUBLE_EQ(result.accuracy, accuracy(labels, result.predictions));
  ASSERT_EQ(result.epoch_ms.size(), 2u);
  ASSERT_EQ(result.validation_accuracy.size(), 2u);

  for (const FlowPhase phase :
       {FlowPhase::decode, FlowPhase::augment, FlowPhase::forward, FlowPhase::backward, FlowPhase::update,
        FlowPhase::evaluate, FlowPhase::predict, FlowPhase::other})
    EXPECT_GT(result[phase], 0) << name_of(phase);
  EXPECT_EQ(result[FlowPhase::copy], 0);
  const double sum = std::accumulate(result.phase_ms.begin(), result.phase_ms.end(), 0.0);
  EXPECT_NEAR(sum, result.total_ms, 1e-6 * result.total_ms);
  const double epochs = result.epoch_ms[0] + result.epoch_ms[1];
  EXPECT_LT(epochs, result.total_ms);
  EXPECT_LE(result[FlowPhase::augment] + result[FlowPhase::forward] + result[FlowPhase::backward] +
                result[FlowPhase::update] + result[FlowPhase::evaluate],
            epochs * (1 + 1e-6));

  // A second run gives the same results; only the times vary.
  const TempFolder other;
  write_flow_plates(other.path(), flow);
  const FlowResult again = run_plates_flow(other.path(), flow, cpu_device);
  EXPECT_EQ(again.predictions, result.predictions);
  EXPECT_EQ(again.validation_accuracy, result.validation_accuracy);
}

TEST(StudyPlates, MissingWeights_Throw) {
  const TempFolder folder;
  PlatesFlow flow = small_flow();
  flow.pretrained = folder.path() / "none.pth";
  write_flow_plates(folder.path(), flow);
  EXPECT_THROW(run_plates_flow(folder.path(), flow, cpu_device), Error);
}

// Synthetic results, so that findings about two devices can be tested without a GPU.
FlowResult synthetic_result(Device device, double scale) {
  FlowResult result{.device = device, .engine = "synthetic", .train = 34, .validation = 8};
  for (std::size_t i = 0; i < flow_phase_count; ++i) result.phase_ms[i] = scale * static_cast<double>(i + 1);
  result[FlowPhase::copy] = device.is_cuda() ? 5 : 0;
  result.total_ms = std::accumulate(result.phase_ms.begin(), result.phase_ms.end(), 0.0);
  result.epoch_ms = {3 * scale, 1 * scale, 2 * scale};
  result.validation_accuracy = {0.5, 0.75, 1};
  for (int i = 0; i < 100; ++i) result.predictions.push_back(i % 2);
  result.accuracy = 0.9;
  return result;
}

const StudyRow& row_of(const std::vector<StudyRow>& rows, const std::string& name,
                       const std::string& device) {
  const auto found = std::ranges::find_if(
      rows, [&](const StudyRow& row) { return row.case_name == name && row.device == device; });
  EXPECT_NE(found, rows.end()) << name;
  return *found;
}

TEST(PlatesFindings, Rows_HaveFlowEpochAndPhasesPerDevice) {
  const std::vector<FlowResult> results{synthetic_result(cpu_device, 100),
                                        synthetic_result(cuda_device(), 10)};
  const std::vector<StudyRow> rows = plates_rows(results);
  EXPECT_EQ(rows.size(), 2 * (2 + flow_phase_count) - 1) << "there is no copy on the CPU";
  const StudyRow whole = row_of(rows, "whole flow", "cuda:0");
  EXPECT_EQ(whole.version, "cuda");
  EXPECT_TRUE(whole.agrees);
  EXPECT_EQ(whole.figures["max_error"], 0);
  EXPECT_DOUBLE_EQ(whole.value("median_ms"), results[1].total_ms);
  EXPECT_DOUBLE_EQ(whole.value("speedup"), results[0].total_ms / results[1].total_ms);
  const StudyRow epoch = row_of(rows, "an epoch", "cuda:0");
  EXPECT_EQ(epoch.value("median_ms"), 20);
  EXPECT_EQ(epoch.value("min_ms"), 10);
  EXPECT_EQ(epoch.value("max_ms"), 30);
  EXPECT_DOUBLE_EQ(epoch.value("speedup"), 10);
  EXPECT_EQ(row_of(rows, "forward", "cpu").value("median_ms"), 400);
  EXPECT_DOUBLE_EQ(row_of(rows, "forward", "cuda:0").value("speedup"), 10);
  EXPECT_FALSE(row_of(rows, "copy", "cuda:0").figures["speedup"]);
  EXPECT_FALSE(row_of(rows, "whole flow", "cpu").figures["max_error"]) << "it is the reference";
}

TEST(PlatesFindings, DifferingPredictions_AreWrong) {
  std::vector<FlowResult> results{synthetic_result(cpu_device, 100), synthetic_result(cuda_device(), 10)};
  for (std::size_t i = 0; i < 3; ++i) results[1].predictions[i] ^= 1;
  EXPECT_TRUE(row_of(plates_rows(results), "whole flow", "cuda:0").agrees) << "3 of 100 may differ";
  results[1].predictions[3] ^= 1;
  const std::vector<StudyRow> rows = plates_rows(results);
  const StudyRow whole = row_of(rows, "whole flow", "cuda:0");
  EXPECT_FALSE(whole.agrees);
  EXPECT_DOUBLE_EQ(whole.value("max_error"), 0.04);
  EXPECT_TRUE(std::isnan(whole.value("median_ms")));
  EXPECT_FALSE(whole.figures["speedup"]);
  EXPECT_TRUE(row_of(rows, "whole flow", "cpu").agrees);
  results[1].predictions.pop_back();
  EXPECT_EQ(differing_share(results[0], results[1]), 1);
}

TEST(PlatesFindings, FileWithDifferentOutputs_IsWrong) {
  std::vector<FlowResult> results{synthetic_result(cpu_device, 100)};
  results[0].file_agrees = false;
  EXPECT_FALSE(row_of(plates_rows(results), "whole flow", "cpu").agrees);
  const std::vector<std::string> findings = plates_findings(results);
  EXPECT_EQ(
      std::ranges::count(findings, "The model file gives different outputs than the model trained on cpu."),
      1);
}

TEST(PlatesFindings, Findings_ReportTotalsAndPhases) {
  std::vector<FlowResult> results{synthetic_result(cpu_device, 100), synthetic_result(cuda_device(), 10)};
  results[1].predictions[0] ^= 1;
  const std::vector<std::string> findings = plates_findings(results);
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(
      findings[0],
      "3 epochs over 34 photographs, each validated on 8, and 100 predictions take 4.20 s on cpu; 425 ms on "
      "cuda:0, 9.9 times as fast.");
  EXPECT_EQ(
      findings[1],
      "Where the time goes on cpu: other 21 %, predict 19 %, evaluate 17 %, update 14 %, backward 12 %.");
  EXPECT_EQ(findings[3], "cpu and cuda:0 agree on 99.0 % of the test plates (required: 97 %).");
  EXPECT_EQ(findings[4], "Accuracy on the test plates: 90.0 % on cpu, 90.0 % on cuda:0.");
}

TEST(PlatesFindings, Plots_HaveOneSeriesPerDevice) {
  const std::vector<FlowResult> results{synthetic_result(cpu_device, 100),
                                        synthetic_result(cuda_device(), 10)};
  const std::vector<Plot> plots = plates_plots(results);
  ASSERT_EQ(plots.size(), 3u);
  ASSERT_EQ(plots[0].series.size(), 2u);
  EXPECT_EQ(plots[0].categories.size(), flow_phase_count);
  EXPECT_EQ(plots[0].series[1].name, "cuda:0");
  EXPECT_EQ(plots[0].series[0].y.size(), flow_phase_count);
  const std::vector<double>& shares = plots[1].series[0].y;
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9);
  EXPECT_EQ(plots[2].series[0].x, (std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace tandem
