// The cluster study with ranks that are processes.
#include "tandem/study/cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/report/html.h"
#include "tandem/report/json.h"
#include "tandem/report/study_text.h"
#include "tandem/study/cluster_findings.h"
#include "tests/core/error_text.h"
#include "tests/paths.h"

namespace tandem {
namespace {

StudyOptions options_for(const std::string& name, const std::vector<int>& ranks) {
  StudyOptions options{.quick = true, .cases = {name}, .ranks = ranks};
  options.program = program_file;
  return options;
}

TEST(ClusterStudy, TwoRanks_GiveAWholeTable) {
  for (const char* const name : {"resnet18 32 batch 6", "784,16,10 batch 6"}) {
    const StudyReport report = study_cluster(options_for(name, {1, 2}));
    ASSERT_EQ(report.rows.size(), 2u);
    for (const StudyRow& row : report.rows) {
      EXPECT_EQ(row.case_name, name);
      EXPECT_TRUE(row.agrees) << row.value("max_error");
      EXPECT_GT(row.value("median_ms"), 0);
      EXPECT_NEAR(row.value("samples_per_s"), 6e3 / row.value("median_ms"), 1e-6);
      EXPECT_TRUE(row.basis.empty());
      EXPECT_FALSE(row.engine.empty());
    }
    EXPECT_EQ(report.rows[0].value("efficiency"), 1);
    EXPECT_FALSE(report.rows[0].figures["exchange_ms"]);
    const StudyRow& two = report.rows[1];
    EXPECT_EQ(two.version, "2 ranks");
    EXPECT_EQ(two.ranks, 2);
    EXPECT_GT(two.value("exchange_ms"), 0);
    EXPECT_GE(two.value("exposed_ms"), 0);
    EXPECT_TRUE(two.value("hidden") >= 0 && two.value("hidden") <= 1);
    EXPECT_GE(two.value("slowest_behind"), 0);
    EXPECT_GE(report.findings.size(), 3u);
    EXPECT_EQ(report.plots.size(), 2u);
  }
}

TEST(ClusterStudy, Simulation_IsMarkedAsModelled) {
  StudyOptions options = options_for("cnn 16 batch 8", {1});
  options.simulate = {{.nodes = 1, .ranks = 8}, {.nodes = 8, .ranks = 128}};
  const StudyReport report = study_cluster(options);
  const auto json = nlohmann::json::parse(to_json_text(report));
  int measured = 0, modelled = 0;
  for (const auto& row : json["rows"]) {
    const bool is_modelled = row.value("basis", "") == "modelled";
    EXPECT_EQ(row["case"].get<std::string>().starts_with("modelled"), is_modelled);
    ++(is_modelled ? modelled : measured);
    EXPECT_GT(row["samples_per_s"].get<double>(), 0);
  }
  EXPECT_EQ(measured, 3);  // 1, and what the model is fitted to: 2 and 4
  EXPECT_EQ(modelled, 4);  // one node, and eight with three links
  EXPECT_EQ(json["rows"][6]["version"], "8×128");
  EXPECT_EQ(json["rows"][6]["ranks"], 1024);
  EXPECT_LE(json["rows"][6]["efficiency"].get<double>(), 1);
  EXPECT_EQ(report.plots.back().title, "Modelled: cnn 16 on nodes of 128 ranks");
  const std::string text = study_text(report, {.width = 80});
  EXPECT_NE(text.find("Modelled, not measured"), std::string::npos) << text;
  const std::string page = html_page(std::vector{report}, "page");
  for (const char* const words :
       {"modelled: cnn 16", "1 study, 3 measurements", "What is called modelled was"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

// On a machine with fewer CPUs than 8: the sentences about made-up rows.
TEST(ClusterFindings, PredictionBesideMeasurement_SaysHowFarItIsOff) {
  const auto row = [](int ranks, double step_ms) {
    StudyRow one{.case_name = "cnn 16 batch 32", .version = fmt::format("{} ranks", ranks)};
    one.ranks = ranks;
    one.figures["median_ms"] = step_ms;
    one.figures["samples_per_s"] = 32e3 / step_ms;
    one.figures["efficiency"] = 400 / step_ms;
    return one;
  };
  ClusterResult result{.study_case = parse_cluster_case("cnn 16 batch 32"),
                       .measured = {row(1, 400), row(2, 320), row(4, 300), row(8, 320)},
                       .here = {row(8, 400)},
                       .fitted = {2, 4}};
  result.measured[3].figures["slowest_rank"] = 5;
  result.measured[3].figures["slowest_behind"] = 0.25;
  const std::vector<std::string> findings = cluster_findings(result);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0],
            "4 ranks train 107 images/s on this machine, 133 % of one process with the same CPUs (cnn 16 "
            "batch 32).");
  EXPECT_EQ(findings[1],
            "Of 8 ranks, rank 5 is the slowest: it computes 25 % longer than the median rank, and the others "
            "wait (cnn 16 batch 32).");
  EXPECT_EQ(
      findings[2],
      "Modelled from 2 and 4 ranks, 8 ranks train 80 images/s; measured: 100 images/s. The model is 20.0 "
      "% too slow (cnn 16 batch 32).");
  // The model's line begins at what it was fitted to.
  result.model = ClusterModel{.base_ranks = 4, .without_ms = 300, .fixed_ms = 200, .rank_ms = 25};
  const std::vector<Plot> plots = cluster_plots(result, {}, 8);
  ASSERT_EQ(plots.size(), 2u);
  ASSERT_EQ(plots[0].series.size(), 2u);
  EXPECT_EQ(plots[0].series[1].name, "modelled from 2 and 4 ranks");
  EXPECT_EQ(plots[0].series[1].x, (std::vector<double>{2, 4, 8}));
  EXPECT_EQ(plots[0].series[1].y, (std::vector<double>{32e3 / 250, 32e3 / 300, 32e3 / 400}));
}

TEST(ClusterStudy, BadRequests_AreRefusedInOneLine) {
  EXPECT_EQ(error_text([] {
              study_cluster(options_for("cnn 16 batch 4", {1, 5}));
            }),
            "[study cluster] expected at most 4 ranks for \"cnn 16 batch 4\", one per image, got 5");
  StudyOptions on_gpu = options_for("cnn 16 batch 4", {1});
  on_gpu.devices = {Device{Backend::cuda, 0}};
  EXPECT_EQ(error_text([&] { study_cluster(on_gpu); }), "[study cluster] expected the CPU, got cuda:0");
  StudyOptions failing = options_for("cnn 16 batch 4", {2});
  failing.program = "/bin/false";
  EXPECT_EQ(error_text([&] { study_cluster(failing); }), "[study cluster] 2 ranks ended with status 1");
}

}  // namespace
}  // namespace tandem
