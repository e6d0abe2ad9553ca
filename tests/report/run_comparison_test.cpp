// The report of a run as JSON, and runs side by side.
#include "tandem/report/run_comparison.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/report/training_json.h"
#include "tests/report/report_fixture.h"

namespace tandem {
namespace {

TrainingReport run_with(double accuracy, std::int64_t images, double epoch_seconds) {
  TrainingReport report;
  report.title = "mlp on digits";
  report.command = "tandem train digits";
  report.facts = {{"device", "cpu"}, {"engine", "perceptron"}};
  report.provenance = {{"host", "here"}, {"version", "0.1.0"}};
  report.best_epoch = 2;
  report.test_accuracy = accuracy;
  report.test_loss = 0.25;
  report.total_seconds = 3 * epoch_seconds;
  report.classes = {"cat", "dog"};
  const auto correct = static_cast<std::int64_t>(accuracy * static_cast<double>(images) + 0.5);
  report.confusion = {correct, images - correct, 0, 0};
  for (int epoch = 1; epoch <= 3; ++epoch)
    report.epochs.push_back({.epoch = epoch,
                             .train_loss = 1.0 / epoch,
                             .train_accuracy = 0.5,
                             .val_loss = 2.0 / epoch,
                             .val_accuracy = 0.25 * epoch,
                             .val_count = 40,
                             .learning_rate = 0.5,
                             .seconds = epoch_seconds * (1 + 0.01 * epoch),
                             .samples_per_second = 1000,
                             .waited_seconds = 0,
                             .metrics = {{"top5", 0.125}}});
  return report;
}

std::vector<ComparedRun> two_runs() {
  return {{.name = "runs/a",
           .options = {{"data", "digits"}, {"lr", "0.5"}, {"seed", "1"}},
           .report = run_with(0.75, 1000, 1),
           .data = "same"},
          {.name = "runs/b",
           .options = {{"data", "digits"}, {"lr", "0.1"}, {"seed", "1"}, {"augment", "flip 0.5"}},
           .report = run_with(0.85, 1000, 2),
           .data = "same"}};
}

std::string all_findings(const std::vector<ComparedRun>& runs) {
  std::string text;
  for (const std::string& finding : comparison_findings(runs)) text += finding + "\n";
  return text;
}

TEST(TrainingJson, Report_IsReadAgain) {
  TrainingReport report = run_with(0.75, 1000, 1);
  report.warnings = {"few \"images\""};
  report.test_loss = not_measured;
  const TrainingReport read = parse_training_report(to_json_text(report), "report.json");
  EXPECT_EQ(to_json_text(read), to_json_text(report));
  EXPECT_EQ(read.title, report.title);
  EXPECT_EQ(read.best_epoch, 2);
  EXPECT_EQ(read.test_accuracy, 0.75);
  EXPECT_TRUE(std::isnan(read.test_loss));
  EXPECT_EQ(read.confusion, report.confusion);
  ASSERT_EQ(read.epochs.size(), 3U);
  const EpochRecord &last = read.epochs[2], &written = report.epochs[2];
  EXPECT_EQ(last.epoch, 3);
  for (const auto figure : {&EpochRecord::train_loss, &EpochRecord::train_accuracy, &EpochRecord::val_loss,
                            &EpochRecord::val_accuracy, &EpochRecord::learning_rate, &EpochRecord::seconds,
                            &EpochRecord::samples_per_second, &EpochRecord::waited_seconds})
    EXPECT_EQ(last.*figure, written.*figure);
  EXPECT_EQ(last.val_count, 40);
  ASSERT_EQ(last.metrics.size(), 1U);
  EXPECT_EQ(last.metrics[0].value, 0.125);
  EXPECT_EQ(read.warnings, report.warnings);
}

TEST(TrainingJson, OtherText_ErrorNamesTheFile) {
  const std::string whole = to_json_text(run_with(0.75, 1000, 1));
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{\"study\": \"max\"}"),
                                  std::string("\xff\xfe"), whole.substr(0, whole.size() / 2)})
    try {
      parse_training_report(text, "runs/a/report.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "runs/a/report.json: expected the report of a training run"))
          << error.what();
    }
  std::string small = whole;
  small.replace(small.find("[\"cat\",\"dog\"]"), 13, "[\"cat\"]");
  EXPECT_THROW(parse_training_report(small, "x"), Error);  // the matrix has two classes
}

TEST(RunComparison, Text_ShowsDifferencesResultsAndEpochs) {
  const std::string text = comparison_text(two_runs(), {.width = 80});
  for (const char* const part :
       {"A  runs/a\n", "B  runs/b\n", "lr", "0.1", "augment", "flip 0.5", "2 options are equal", "75.00 %",
        "85.00 %", "3.00 s", "6.00 s", "2 of 3", "50.00 %"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_FALSE(contains(text, "seed")) << "equal options are left out";
}

TEST(RunComparison, DisjointIntervals_AreADifference) {
  const std::string text = all_findings(two_runs());
  EXPECT_TRUE(contains(text, "2 options differ: lr, augment.")) << text;
  EXPECT_TRUE(contains(text, "B has the highest test accuracy: 85.00 %")) << text;
  EXPECT_TRUE(contains(text, "No other interval overlaps")) << text;
  EXPECT_TRUE(contains(text, "An epoch of B takes 2.04 s")) << text;
  EXPECT_TRUE(contains(text, "2 times as long as one of A")) << text;
}

TEST(RunComparison, EqualAccuracies_AreEqual) {
  std::vector<ComparedRun> runs = two_runs();
  for (ComparedRun& run : runs) run.report = run_with(0.75, 20, 1);
  const std::string text = all_findings(runs);
  EXPECT_TRUE(contains(text, "All test accuracies are equal: 75.00 %")) << text;
  EXPECT_FALSE(contains(text, "highest")) << text;
}

TEST(RunComparison, OverlappingIntervals_MayBeChance) {
  std::vector<ComparedRun> runs = two_runs();
  runs[0].report = run_with(0.75, 20, 1);
  runs[1].report = run_with(0.85, 20, 1.005);
  const std::string text = all_findings(runs);
  EXPECT_TRUE(contains(text, "overlaps with that of A: the difference may be chance")) << text;
  EXPECT_TRUE(contains(text, "The times of an epoch overlap")) << text;
}

TEST(RunComparison, OtherData_AccuraciesAreNotCompared) {
  std::vector<ComparedRun> runs = two_runs();
  runs[1].report = run_with(0.85, 500, 1);
  runs[1].data = "other";
  const std::string text = all_findings(runs);
  EXPECT_TRUE(contains(text,
                       "A was tested on 1,000 test images of digits, B on 500 test images of digits: their "
                       "accuracies are not"))
      << text;
  EXPECT_TRUE(contains(text, "did not train and validate on the same images")) << text;
  EXPECT_FALSE(contains(text, "highest")) << text;
  runs = two_runs();
  runs[1].report.classes = {"dog", "cat"};
  EXPECT_FALSE(contains(all_findings(runs), "highest"));
  runs = two_runs();
  runs[1].options[0].value = "mnist";
  EXPECT_FALSE(contains(all_findings(runs), "highest")) << "as many images, but others";
  runs = two_runs();
  runs[1].report.confusion = {800, 100, 50, 50};  // as many images, but more of the second class
  EXPECT_FALSE(contains(all_findings(runs), "highest"));
}

TEST(RunComparison, EpochsMeasuredOnTestImages_AreNotCalledValidation) {
  std::vector<ComparedRun> runs = two_runs();
  EXPECT_TRUE(contains(comparison_text(runs, {.width = 80}), "Accuracy on the validation images"));
  for (ComparedRun& run : runs) run.report.val_name = "test";
  EXPECT_FALSE(contains(comparison_text(runs, {.width = 80}), "validation"));
  EXPECT_TRUE(contains(comparison_page(runs, {}), "test accuracy A"));
  runs[0].report.val_name = "validation";
  EXPECT_TRUE(contains(comparison_text(runs, {.width = 80}), "Accuracy on the validation or test images"));
}

TEST(RunComparison, EpochFarAway_IsOneRow) {
  std::vector<ComparedRun> runs = two_runs();
  runs[0].report.epochs.back().epoch = std::numeric_limits<int>::max();
  EXPECT_TRUE(contains(comparison_text(runs, {.width = 80}), "\n2147483647"));
}

TEST(RunComparison, UnfinishedRun_IsNamed) {
  std::vector<ComparedRun> runs = two_runs();
  runs[1].report.test_accuracy = not_measured;
  runs[1].report.confusion.clear();
  runs[1].report.epochs.pop_back();
  runs[1].report.warnings = {"the loss is not finite"};
  const std::string text = all_findings(runs);
  EXPECT_TRUE(contains(text, "Not finished: B.")) << text;
  EXPECT_TRUE(contains(text, "Warning of B: the loss is not finite.")) << text;
  EXPECT_EQ(body_fault(comparison_page(runs, {})), "");
  runs[0].report.epochs.clear();
  runs[1].report.epochs.clear();
  EXPECT_EQ(body_fault(comparison_page(runs, {})), "");
  EXPECT_FALSE(comparison_text(runs, {.width = 80}).empty());
}

TEST(RunComparison, Page_IsWellFormedAndMarksDifferences) {
  std::vector<ComparedRun> runs = two_runs();
  runs[0].name = "runs/<a>";
  const std::string html = comparison_page(runs, {{"command", "tandem compare"}});
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "runs/&lt;a&gt;"));
  EXPECT_TRUE(contains(html, "<tr class=\"marked\"><td>lr ≠</td><td>0.5</td><td>0.1</td></tr>"));
  EXPECT_TRUE(contains(html, "<tr><td>seed</td><td>1</td><td>1</td></tr>"));
  EXPECT_TRUE(contains(html, "Accuracy, validation"));
  EXPECT_LT(html.find("augment ≠"), html.find("<td>seed</td>"));
}

TEST(RunComparison, Json_HasEveryRun) {
  const auto json = nlohmann::json::parse(comparison_json(two_runs(), {{"command", "tandem compare"}}));
  EXPECT_EQ(json["differing_options"], (std::vector<std::string>{"lr", "augment"}));
  ASSERT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][1]["options"]["augment"], "flip 0.5");
  EXPECT_EQ(json["runs"][1]["report"]["test_accuracy"], 0.85);
  EXPECT_EQ(json["runs"][1]["report"]["epochs"].size(), 3U);
  EXPECT_EQ(json["provenance"]["command"], "tandem compare");
}

TEST(RunComparison, ManyEpochs_AreThinnedInTheTextAlone) {
  std::vector<ComparedRun> runs = two_runs();
  for (int epoch = 4; epoch <= 200; ++epoch) {
    EpochRecord record = runs[0].report.epochs[0];
    record.epoch = epoch;
    runs[0].report.epochs.push_back(record);
  }
  runs[0].report.best_epoch = 197;
  const std::string text = comparison_text(runs, {.width = 80});
  EXPECT_TRUE(contains(text, " of 200 epochs; --html and --json have all."));
  EXPECT_TRUE(contains(text, "\n  197 "));
  EXPECT_FALSE(contains(text, "\n  198 "));
}

}  // namespace
}  // namespace tandem
