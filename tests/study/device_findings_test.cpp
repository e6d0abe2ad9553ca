// Findings and plots for synthetic rows.
#include "tandem/study/device_findings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using Sentences = std::vector<std::string>;

// Adds rows where an epoch takes 100 ms on the CPU and 100 ms / speedup on cuda:0.
void add(std::vector<StudyRow>& rows, const std::string& network, int batch, double speedup,
         double copy_ms = 1) {
  StudyRow cpu{.case_name = network + " batch " + std::to_string(batch),
               .version = "cpu",
               .device = "cpu",
               .figures = {{"median_ms", 100}, {"speedup", 1}, {"samples_per_s", 600000}}};
  StudyRow cuda = cpu;
  cuda.version = "cuda";
  cuda.device = "cuda:0";
  cuda.figures["median_ms"] = 100 / speedup;
  cuda.figures["with_copies_ms"] = cuda.value("median_ms") + copy_ms;
  cuda.figures["speedup"] = speedup;
  cuda.figures["samples_per_s"] = 600000 * speedup;
  rows.push_back(cpu);
  rows.push_back(cuda);
}

TEST(DeviceFindings, NoRows_GiveNoFindingsOrPlots) {
  EXPECT_EQ(device_findings({}, 2), Sentences{});
  EXPECT_TRUE(device_plots({}, 2).empty());
}

TEST(DeviceFindings, Crossover_IsReportedPerBatchSize) {
  std::vector<StudyRow> rows;
  add(rows, "784,200,10", 16, 2);  // not in order of size; the findings sort by weights
  add(rows, "784,32,10", 16, 0.5);
  add(rows, "784,1024,10", 16, 20);
  add(rows, "784,32,10", 128, 1.5);
  add(rows, "784,200,10", 128, 4);
  add(rows, "784,32,10", 512, 0.4);
  add(rows, "784,200,10", 512, 0.8);
  add(rows, "784,32,10", 1024, 3);
  add(rows, "784,200,10", 1024, 0.9);
  EXPECT_EQ(
      device_findings(rows, 2).front(),
      "Where cuda:0 becomes faster: at batch 16 from 784,200,10 on, at batch 128 with every network, at "
      "batch 512 in no case, at batch 1024 only with 784,32,10. Its speed ranges from 0.40 times the CPU's "
      "speed (784,32,10 batch 512) to 20 times the CPU's speed (784,1024,10 batch 16).");
}

TEST(DeviceFindings, OverlappingSpreads_AreNotCalledFaster) {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 16, 1.5);
  for (StudyRow& row : rows) {
    row.figures["min_ms"] = row.value("median_ms") * 0.7;
    row.figures["max_ms"] = row.value("median_ms") * 1.3;
  }
  EXPECT_EQ(device_findings(rows, 2).front(),
            "cuda:0 is faster in no case: 1.5 times the CPU's speed (784,32,10 batch 16).");
}

TEST(DeviceFindings, ConvolutionalNetwork_IsNotMixedWithPerceptrons) {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 128, 0.5);
  add(rows, "784,1024,10", 128, 2);
  add(rows, "cnn", 128, 30);
  EXPECT_EQ(device_findings(rows, 2).front().substr(0, 88),
            "Where cuda:0 becomes faster: at batch 128 from 784,1024,10 on, with cnn at batch 128. It");
  const std::vector<Plot> plots = device_plots(rows, 2);
  ASSERT_EQ(plots[0].series.size(), 3u);
  EXPECT_EQ(plots[0].series[0].name, "batch 128");
  EXPECT_EQ(plots[0].series[0].y, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(plots[0].series[1].name, "cnn, batch 128");
  EXPECT_EQ(plots[0].series[1].y, (std::vector<double>{30}));
  ASSERT_EQ(plots[1].series.size(), 4u);  // two devices, perceptrons and the convolutional network
  EXPECT_EQ(plots[1].series[1].name, "cpu, cnn, batch 128");
}

TEST(DeviceFindings, GpuFasterEverywhereOrNowhere_IsReported) {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 16, 2);
  EXPECT_EQ(device_findings(rows, 2).front(),
            "cuda:0 is faster in every case: 2.0 times the CPU's speed (784,32,10 batch 16).");
  rows.clear();
  add(rows, "784,32,10", 16, 0.5);
  add(rows, "784,200,10", 16, 0.25);
  EXPECT_EQ(
      device_findings(rows, 2).front(),
      "cuda:0 is faster in no case: from 0.25 times the CPU's speed (784,200,10 batch 16) to 0.50 times "
      "the CPU's speed (784,32,10 batch 16).");
}

TEST(DeviceFindings, CopyCost_IsReported) {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 16, 4, 10);
  EXPECT_EQ(
      device_findings(rows, 2)[1],
      "Copying the images to cuda:0 takes 10.0 ms, once per training run: as long as 0.4 of the shortest "
      "epochs (784,32,10 batch 16). It does not make the CPU faster for even one epoch.");
  rows.clear();
  add(rows, "784,32,10", 16, 4, 80);
  add(rows, "784,200,10", 16, 2, 80);
  EXPECT_EQ(
      device_findings(rows, 2)[1],
      "Copying the images to cuda:0 takes 80.0 ms, once per training run: as long as 3.2 of the shortest "
      "epochs (784,32,10 batch 16). Including it, the CPU is faster for one epoch of "
      "784,32,10 batch 16 and 784,200,10 batch 16.");
}

std::vector<StudyRow> cpu_rows() {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 16, 1);
  add(rows, "784,32,10", 1024, 1);
  add(rows, "784,200,10", 16, 1);
  add(rows, "784,200,10", 1024, 1);
  std::erase_if(rows, [](const StudyRow& row) { return row.device != "cpu"; });
  rows[1].figures["median_ms"] = 50;
  rows[3].figures["median_ms"] = 8;
  return rows;
}

TEST(DeviceFindings, CpuOnly_ReportsGainFromBatchSize) {
  EXPECT_EQ(device_findings(cpu_rows(), 2),
            Sentences{"On cpu, batch size 1024 instead of 16 makes an epoch 2.0 times as fast with 784,32,10 "
                      "and 12 times as fast with 784,200,10."});
}

// 100 ms with one thread, 100 / gain with two, twice that with eight.
void add_sweep(std::vector<StudyRow>& rows, const std::string& case_name, double gain) {
  for (const auto& [threads, ms] : {std::pair{1, 100.0}, {2, 100 / gain}, {8, 200 / gain}})
    rows.push_back({.case_name = case_name,
                    .version = "cpu",
                    .device = "cpu",
                    .threads = threads,
                    .figures = {{"median_ms", ms}, {"samples_per_s", 6e7 / ms}},
                    .engine = "perceptron on the CPU, " + std::to_string(threads) + " threads"});
}

TEST(DeviceFindings, ThreadSweep_IsReportedForTheLowestAndTheHighestGain) {
  std::vector<StudyRow> rows;
  add_sweep(rows, "784,32,10 batch 16", 1.25);
  add_sweep(rows, "784,200,10 batch 16", 1.5);
  add_sweep(rows, "784,1024,10 batch 16", 2);
  EXPECT_EQ(
      device_findings(rows, 2),
      (Sentences{
          "With 2 threads training is 1.2 times as fast as with 1: 62 % of linear scaling (784,32,10 "
          "batch 16).",
          "With 8 threads on 2 CPUs, training is slower than with 2, 160 ms versus 80.0 ms: oversubscribed, "
          "the threads take turns on the CPUs (784,32,10 batch 16).",
          "With 2 threads training is 2.0 times as fast as with 1: 100 % of linear scaling "
          "(784,1024,10 batch 16).",
          "With 8 threads on 2 CPUs, training is slower than with 2, 100 ms versus 50.0 ms: oversubscribed, "
          "the threads take turns on the CPUs (784,1024,10 batch 16).",
          "Engine for all cases on cpu: perceptron on the CPU."}));
}

TEST(DeviceFindings, ThreadSweep_IsPlottedAndElsewhereTheFastestCounts) {
  std::vector<StudyRow> rows;
  add_sweep(rows, "784,32,10 batch 16", 1.25);
  rows.push_back({.case_name = "784,32,10 batch 16",
                  .version = "cuda",
                  .device = "cuda:0",
                  .figures = {{"median_ms", 20}, {"speedup", 5}, {"samples_per_s", 3e6}}});
  EXPECT_EQ(device_findings(rows, 2).front(),
            "cuda:0 is faster in every case: 4.0 times the CPU's speed (784,32,10 batch 16).")
      << "not 5 times, over one thread";
  const std::vector<Plot> plots = device_plots(rows, 2);
  EXPECT_EQ(plots[0].series[0].y, std::vector<double>{4});
  EXPECT_EQ(plots[1].series[0].y, std::vector<double>{6e7 / 80}) << "one point of the CPU";
  const Plot& threads = plots.back();
  EXPECT_EQ(threads.title, "Scaling with threads");
  EXPECT_EQ(threads.series[0].x, (std::vector<double>{1, 2, 8}));
  ASSERT_TRUE(threads.limit);
  EXPECT_EQ(threads.limit->name, "2 CPUs");
}

TEST(DeviceFindings, OverlappingSpreads_ShowNoGainFromBatchSize) {
  std::vector<StudyRow> rows = cpu_rows();
  for (StudyRow& row : rows) {
    row.figures["min_ms"] = 5;
    row.figures["max_ms"] = 200;
  }
  EXPECT_EQ(
      device_findings(rows, 2),
      Sentences{"On cpu, batch size 1024 instead of 16 makes no clear difference: the spreads overlap."});
  rows[2].figures["min_ms"] = 90;  // 784,200,10
  rows[3].figures["max_ms"] = 10;
  EXPECT_EQ(device_findings(rows, 2),
            Sentences{"On cpu, batch size 1024 instead of 16 makes an epoch not clearly "
                      "faster with 784,32,10 and 12 times as fast with 784,200,10."});
}

TEST(DeviceFindings, Engines_AreListed) {
  std::vector<StudyRow> rows = cpu_rows();
  for (StudyRow& row : rows) row.engine = "perceptron on the CPU, 2 threads";
  rows[2].engine = "perceptron on the CPU, 1 thread";
  EXPECT_EQ(device_findings(rows, 2).back(), "Engine for all cases on cpu: perceptron on the CPU.");
  rows[3].engine = "operations one by one on the CPU, 2 threads";
  const Sentences findings = device_findings(rows, 2);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1], "Engine “perceptron on the CPU”: 784,32,10 batch 16, 1024; 784,200,10 batch 16.");
  EXPECT_EQ(findings[2], "Engine “operations one by one on the CPU”: 784,200,10 batch 1024.");
}

TEST(DeviceFindings, WrongRow_IsIgnored) {
  std::vector<StudyRow> rows;
  add(rows, "784,32,10", 16, 2);
  rows[1].agrees = false;
  EXPECT_EQ(device_findings(rows, 2), Sentences{});
}

TEST(DevicePlots, Crossover_HasOneLinePerBatchSize) {
  std::vector<StudyRow> rows;
  add(rows, "784,200,10", 16, 2);
  add(rows, "784,32,10", 16, 0.5);
  add(rows, "784,32,10", 128, 3);
  const std::vector<Plot> plots = device_plots(rows, 2);
  ASSERT_GE(plots.size(), 2u);
  const Plot& crossover = plots[0];
  EXPECT_TRUE(crossover.log_x && crossover.log_y);
  ASSERT_EQ(crossover.series.size(), 3u);
  EXPECT_EQ(crossover.series[0].name, "batch 16");
  EXPECT_EQ(crossover.series[0].x, (std::vector<double>{25400, 159000}));
  EXPECT_EQ(crossover.series[0].y, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(crossover.series[1].name, "batch 128");
  EXPECT_TRUE(crossover.series[2].dashed);
  EXPECT_EQ(crossover.series[2].y, (std::vector<double>{1, 1}));
  EXPECT_EQ(plots[1].series.size(), 4u);  // two devices, two batch sizes
}

TEST(DevicePlots, CpuOnly_HasNoCrossoverPlot) {
  const std::vector<Plot> plots = device_plots(cpu_rows(), 2);
  ASSERT_FALSE(plots.empty());
  EXPECT_EQ(plots[0].title, "Training throughput");
}

}  // namespace
}  // namespace tandem
