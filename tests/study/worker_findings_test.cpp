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
  EXPECT_EQ(worker_plots(rows, 2).size(), 2u) << "no plot of waits when there were none";
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
  EXPECT_TRUE(worker_plots(rows, 2).empty());
}

TEST(WorkerFindings, MoreWorkersThanCpus_AreNamedAsTheCause) {
  const std::vector<StudyRow> rows{loading("thread", 8, 4e5, 1), loading("thread", 32, 3.96e5, 0.2475),
                                   loading("process", 1, 1e5, 1), loading("process", 8, 1e5, 0.125),
                                   loading("process", 16, 0.5e5, 0.03)};
  EXPECT_EQ(
      worker_findings(rows, 2),
      (std::vector<std::string>{
          "8 threads augment 400 thousand images/s, 32 threads 396 thousand images/s: 25 % of linear scaling "
          "over 8 threads; they stop scaling at 32.",
          "1 process augments 100 thousand images/s, 16 processes 50 thousand images/s: 3 % of linear "
          "scaling over 1 process; they stop scaling at 8.",
          "With 32 threads on 2 CPUs, augmentation alone is about as fast as with 8: oversubscribed, the "
          "threads take turns on the CPUs.",
          "With 16 processes on 2 CPUs, augmentation alone is slower than with 1, 1.20 s versus 600 ms: "
          "oversubscribed, the processes take turns on the CPUs."}));
  for (const Plot& plot : worker_plots(rows, 2)) {
    ASSERT_TRUE(plot.limit) << plot.title;
    EXPECT_EQ(plot.limit->x, 2);
  }
}

TEST(WorkerFindings, TrainerThreads_AreCasesOfTheirOwn) {
  std::vector<StudyRow> rows{loading("thread", 1, 1e6, 1)};
  for (const auto& [threads, ms] : {std::pair{1, 300.0}, {2, 200.0}}) {
    for (StudyRow row : {training("plain", {}, ms, 0), training("thread", 1, ms + 10, 0)}) {
      row.case_name = training_case("cpu", threads);
      row.threads = threads;
      rows.push_back(row);
    }
  }
  const std::vector<std::string> findings = worker_findings(rows, 4);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_TRUE(starts(findings[0], "Training on cpu by 1 thread with threads: training-bound")) << findings[0];
  EXPECT_TRUE(starts(findings[1], "Training on cpu by 2 threads with threads: training-bound"))
      << findings[1];
  EXPECT_EQ(findings[2],
            "Of training on cpu by 1, 2 threads, the shortest median epoch with augmentation takes 210 ms: 2 "
            "threads for training and 1 thread for augmentation.");
  const std::vector<Plot> plots = worker_plots(rows, 4);
  ASSERT_EQ(plots.size(), 3u);
  EXPECT_EQ(plots[1].title, "Epoch time on cpu by 1 thread");
  EXPECT_EQ(plots[2].title, "Epoch time on cpu by 2 threads");
}

TEST(WorkerFindings, Plots) {
  const std::vector<Plot> plots = worker_plots(
      {loading("thread", 1, 1e5, 1), loading("thread", 4, 3e5, 0.75), training("plain", {}, 200, 0),
       training("thread", 1, 600, 150), training("thread", 4, 210, 0)},
      2);
  ASSERT_EQ(plots.size(), 3u);
  EXPECT_EQ(plots[0].series[0].y, (std::vector<double>{1e5, 3e5}));
  EXPECT_EQ(plots[0].series[1].y, (std::vector<double>{1e5, 4e5})) << "linear scaling";
  EXPECT_EQ(plots[1].series[0].x, (std::vector<double>{1, 4}));
  EXPECT_EQ(plots[1].series[1].y, (std::vector<double>{200, 200}));
  EXPECT_EQ(plots[2].series[0].y, (std::vector<double>{0.25, 0}));
}

}  // namespace
}  // namespace tandem
