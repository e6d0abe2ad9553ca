#include "tandem/study/workers.h"

#include <gtest/gtest.h>

#include "tandem/core/parallel.h"
#include "tandem/data/loader/loader.h"
#include "tandem/study/worker_findings.h"
#include "tests/core/error_text.h"
#include "tests/paths.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

TEST(StudyWorkers, EveryWorkerCountAndKind_GivesSameBatches) {
  const StudyReport report = study_workers({.quick = true, .devices = {cpu_device}, .program = program_file});
  std::size_t plain = 0, loading = 0, training = 0;
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << row.version << " " << row.workers.value_or(0);
    EXPECT_NEAR(row.value("samples_per_s"), 6e6 / row.value("median_ms"), 1e-6 * row.value("samples_per_s"));
    if (row.case_name == loading_case) ++loading;
    if (row.case_name == training_case("cpu")) row.version == "plain" ? ++plain : ++training;
    EXPECT_EQ(row.workers.has_value(), row.version != "plain");
    EXPECT_EQ(row.figures["efficiency"].has_value(), row.version != "plain");
    if (row.workers == 1) {
      EXPECT_EQ(row.figures["efficiency"], 1);
    }
    EXPECT_EQ(row.figures["waited_ms"].has_value(), row.case_name != loading_case && row.version != "plain");
    EXPECT_LE(row.figures["waited_ms"].value_or(0), row.value("max_ms"));
  }
  EXPECT_EQ(plain, 1u);
  EXPECT_EQ(loading, training);
  EXPECT_GE(loading, 4u) << "1 and 2 workers at least, of both kinds";
  EXPECT_EQ(report.rows[loading / 2 - 1].workers, default_worker_count());
  EXPECT_EQ(report.findings.size(), 5u);
  EXPECT_GE(report.plots.size(), 2u);
}

TEST(StudyWorkers, OwnCounts_AreMeasuredInOrder) {
  const StudyReport report =
      study_workers({.quick = true, .devices = {cpu_device}, .workers = {3, 2, 3}, .program = program_file});
  std::vector<int> counts;
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees);
    if (row.case_name == loading_case) counts.push_back(*row.workers);
    if (row.workers == 2) {
      EXPECT_EQ(row.figures["efficiency"], 1);
    }
    EXPECT_EQ(row.note, row.workers.value_or(0) > usable_cpus() ? "oversubscribed" : "");
  }
  EXPECT_EQ(counts, (std::vector<int>{2, 3, 2, 3}));
  EXPECT_EQ(report.title, "Augmentation with 2, 3 workers");
}

TEST(StudyWorkers, TrainerThreads_AreSwept) {
  const StudyReport report = study_workers({.quick = true,
                                            .devices = {cpu_device},
                                            .threads = {5, 1},
                                            .workers = {1},
                                            .limit = 300,
                                            .program = program_file});
  std::vector<std::string> cases;
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees) << "the number of threads does not change the loss";
    cases.push_back(row.case_name + ", " + row.version);
    if (row.threads == 5) {
      EXPECT_EQ(row.engine, "perceptron on the CPU, 5 threads");
      EXPECT_EQ(row.note, usable_cpus() < 5 ? "oversubscribed" : "");
    }
  }
  EXPECT_EQ(cases, (std::vector<std::string>{
                       "augmentation alone, thread", "augmentation alone, process",
                       "training on cpu by 1 thread, plain", "training on cpu by 1 thread, thread",
                       "training on cpu by 1 thread, process", "training on cpu by 5 threads, plain",
                       "training on cpu by 5 threads, thread", "training on cpu by 5 threads, process"}));
}

TEST(StudyWorkers, OwnDataRecipeAndNetwork_AreUsedAndNamed) {
  const TempFolder folder;
  write_small_digits(folder / "small");
  const StudyReport report = study_workers({.quick = true,
                                            .devices = {cpu_device},
                                            .workers = {1},
                                            .data = (folder / "small").string(),
                                            .limit = 200,
                                            .augment = Transform::parse("noise 0 0.1"),
                                            .layers = {784, 9, 10},
                                            .program = program_file});
  EXPECT_EQ(report.introduction.find("200 28x28 gray images of small are augmented (noise 0 0.1) by "), 0u)
      << report.introduction;
  EXPECT_NE(report.introduction.find("while training 784,9,10 with"), std::string::npos);
  ASSERT_EQ(report.rows.size(), 5u);
  for (const StudyRow& row : report.rows) {
    EXPECT_TRUE(row.agrees);
    EXPECT_NEAR(row.value("samples_per_s"), 2e5 / row.value("median_ms"), 1e-6 * row.value("samples_per_s"));
  }
  ASSERT_EQ(report.settings.size(), 3u);
  EXPECT_EQ(report.settings[0].value, "small");
  EXPECT_EQ(report.settings[2].value, "784,9,10");
  EXPECT_EQ(error_text([&] { study_workers({.data = (folder / "small").string(), .limit = 301}); }),
            "[study workers] expected a limit of at most 300 training images of small, got 301");
}

}  // namespace
}  // namespace tandem
