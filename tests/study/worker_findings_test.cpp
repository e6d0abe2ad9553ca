// Synthetic rows, one set for each possible bottleneck.
#include "tandem/study/worker_findings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

StudyRow loading(const char* kind, int workers, double rate, double efficiency) {
  return {.case_name = std::string(loading_case),
          .version = kind,
          .device = "cpu",
          .workers = workers,
          .figures = {{"median_ms", 6e7 / rate}, {"samples_per_s", rate}, {"efficiency", efficiency}}};
}

StudyRow training(const char* version, std::optional<int> workers, double epoch_ms, double waited_ms) {
  return {.case_name = "training on cpu",
          .version = version,
          .device = "cpu",
          .workers = workers,
          .figures = {{"median_ms", epoch_ms}, {"samples_per_s", 6e7 / epoch_ms}, {"waited_ms", waited_ms}}};
}

bool starts(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

TEST(WorkerFindings, TrainingBound) {
  const std::vector<std::string> findings = worker_findings(
      {loading("thread", 1, 1e5, 1), loading("thread", 2, 2e5, 1), loading("thread", 4, 4e5, 1),
       training("plain", {}, 200, 0), training("thread", 1, 600, 400), training("thread", 2, 300, 100),
       training("thread", 4, 210, 2)},
      16);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(
      findings[0],
      "Training on cpu with threads: training-bound from 4 workers on: more workers do not help. The "
      "trainer waits 1 % of an epoch; the fastest epoch, with 4 threads, takes 210 ms, 1.05 times an epoch "
      "without augmentation.");
  EXPECT_EQ(
      findings[1],
      "1 thread augments 100 thousand images/s, 4 threads 400 thousand images/s: 100 % of linear scaling "
      "over 1 thread, so they scale.");
}

TEST(WorkerFindings, WaitWithMoreWorkers_IsAugmentationBound) {
  const std::vector<std::string> findings = worker_findings(
      {loading("thread", 1, 1e5, 1), loading("thread", 2, 2e5, 1), training("plain", {}, 200, 0),
       training("thread", 1, 201, 1), training("thread", 2, 300, 150)},
      16);
  EXPECT_TRUE(starts(findings[0], "Training on cpu with threads: augmentation-bound")) << findings[0];
}

TEST(WorkerFindings, AugmentationBound) {
  const std::vector<std::string> findings = worker_findings(
      {loading("process", 1, 1e5, 1), loading("process", 2, 2e5, 1), training("plain", {}, 60, 0),
       training("process", 1, 600, 540), training("process", 2, 300, 240)},
      16);
  EXPECT_EQ(
      findings[0],
      "Training on cpu with processes: augmentation-bound: with 2 processes the trainer still waits 80 % of "
      "an epoch. Alone they produce 200 thousand images/s, and training without augmentation consumes 1 "
      "million images/s: about 10 such workers would be needed. Currently the fastest epoch, with 2 "
      "processes, takes 300 ms, 5.00 times an epoch without augmentation.");
}

TEST(WorkerFindings, SharedCpus) {
  const std::vector<StudyRow> fed{loading("thread", 1, 1e6, 1), loading("thread", 2, 1.9e6, 0.95),
                                  training("plain", {}, 200, 0), training("thread", 1, 260, 1),
                                  training("thread", 2, 280, 0)};
  EXPECT_EQ(
      worker_findings(fed, 2)[0],
      "Training on cpu with threads: the CPUs are shared: from 1 worker on the trainer waits only 0 % of "
      "an epoch, but the fastest epoch, with 1 thread, takes 260 ms, 1.30 times an epoch without "
      "augmentation: the workers compete with training for 2 CPUs. More workers do not help.");
  const std::vector<StudyRow> waiting{loading("thread", 1, 1e5, 1), loading("thread", 2, 1.1e5, 0.55),
                                      training("plain", {}, 200, 0), training("thread", 2, 400, 200)};
  EXPECT_EQ(
      worker_findings(waiting, 2)[0],
      "Training on cpu with threads: the CPUs are shared: with 2 threads on 2 CPUs the trainer still waits "
      "50 % of an epoch, and augmentation reaches only 55 % of linear scaling over 1 thread: more workers do "
      "not help. Currently the fastest epoch, with 2 threads, takes 400 ms, 2.00 times an epoch without "
      "augmentation.");
}

TEST(WorkerFindings, TrainingFasterThanPlain_HasCaveat) {
  const std::vector<StudyRow> rows{loading("thread", 1, 1e6, 1), training("plain", {}, 200, 0),
                                   training("thread", 1, 100, 0)};
  EXPECT_NE(
      worker_findings(rows, 2)[0].find("0.50 times an epoch without augmentation (other work on this machine "
                                       "disturbed the measurement)."),
      std::string::npos);
  EXPECT_EQ(worker_plots(rows).size(), 2u) << "no plot of waits when there were none";
}

TEST(WorkerFindings, WrongRows_AreIgnored) {
  std::vector<StudyRow> rows{loading("thread", 1, 1e5, 1), loading("thread", 2, 1.2e5, 0.6),
                             loading("process", 1, 1e5, 1), loading("process", 2, 0.6e5, 0.3)};
  EXPECT_EQ(
      worker_findings(rows, 2),
      (std::vector<std::string>{"1 thread augments 100 thousand images/s, 2 threads 120 thousand "
                                "images/s: 60 % of linear scaling over 1 thread; they stop scaling at 2.",
                                "1 process augments 100 thousand images/s, 2 processes 60 thousand "
                                "images/s: 30 % of linear scaling over 1 process; they stop scaling at 2.",
                                "2 processes reach 50 % of the rate of the same number of threads."}));
  for (StudyRow& row : rows) row.agrees = false;
  EXPECT_TRUE(worker_findings(rows, 2).empty());
  EXPECT_TRUE(worker_plots(rows).empty());
}

TEST(WorkerFindings, Plots) {
  const std::vector<Plot> plots = worker_plots(
      {loading("thread", 1, 1e5, 1), loading("thread", 4, 3e5, 0.75), training("plain", {}, 200, 0),
       training("thread", 1, 600, 150), training("thread", 4, 210, 0)});
  ASSERT_EQ(plots.size(), 3u);
  EXPECT_EQ(plots[0].series[0].y, (std::vector<double>{1e5, 3e5}));
  EXPECT_EQ(plots[0].series[1].y, (std::vector<double>{1e5, 4e5})) << "linear scaling";
  EXPECT_EQ(plots[1].series[0].x, (std::vector<double>{1, 4}));
  EXPECT_EQ(plots[1].series[1].y, (std::vector<double>{200, 200}));
  EXPECT_EQ(plots[2].series[0].y, (std::vector<double>{0.25, 0}));
}

}  // namespace
}  // namespace tandem
