#include "tandem/study/workers.h"

#include <gtest/gtest.h>

#include "tandem/core/parallel.h"
#include "tandem/data/loader/loader.h"
#include "tandem/study/worker_findings.h"

namespace tandem {
namespace {

TEST(StudyWorkers, EveryWorkerCountAndKind_GivesSameBatches) {
  const StudyReport report =
      study_workers({.quick = true, .devices = {cpu_device}, .program = TANDEM_PROGRAM});
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
  const StudyReport report = study_workers(
      {.quick = true, .devices = {cpu_device}, .workers = {3, 2, 3}, .program = TANDEM_PROGRAM});
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
}

}  // namespace
}  // namespace tandem
