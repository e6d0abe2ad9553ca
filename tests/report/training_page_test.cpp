#include "tandem/report/training_page.h"

#include "tandem/report/training_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report_fixture.h"
#include "tandem/core/error.h"
#include "tandem/report/csv.h"

namespace tandem {
namespace {

TrainingReport sample_run() {
  TrainingReport report;
  report.title = "mlp on digits";
  report.command = "tandem train digits --epochs 2";
  report.facts = {{"Seed", "17"}};
  report.epochs = {{.epoch = 1,
                    .train_loss = 0.5,
                    .train_accuracy = 0.85,
                    .val_loss = 0.25,
                    .val_accuracy = 0.9213,
                    .learning_rate = 0.1,
                    .seconds = 2.5,
                    .samples_per_second = 24000,
                    .waited_seconds = 0.125},
                   {.epoch = 2,
                    .train_loss = 0.125,
                    .train_accuracy = 0.95,
                    .val_loss = 0.1234,
                    .val_accuracy = 0.97,
                    .learning_rate = 0.05,
                    .seconds = 75,
                    .samples_per_second = 25000}};
  report.best_epoch = 2;
  report.test_accuracy = 0.9705;
  report.total_seconds = 3725;
  report.classes = {"cat", "dog", "owl"};
  report.confusion = {90, 7, 3, 5, 95, 0, 0, 0, 1000};
  report.mistakes = {
      {.file = "Man", .truth = "cat", .predicted = "dog", .probability = 0.9987, .name = "image 41"},
      {.file = "M", .truth = "dog", .predicted = "cat", .probability = 0.75, .name = "image 42"}};
  return report;
}

std::string body_fault(const std::string& html) {
  const std::size_t from = html.find("<body>"), to = html.find("</body>");
  if (from == std::string::npos || to == std::string::npos) return "no body";
  std::string body = html.substr(from, to + 7 - from);
  for (std::size_t at; (at = body.find("<script")) != std::string::npos;)  // text to HTML, not to XML
    body.erase(at, body.find("</script>", at) + 9 - at);
  return xml_fault(body);
}

TEST(TrainingPage, CrossValidation_HasASectionAndIsReadAgain) {
  TrainingReport report = sample_run();
  EXPECT_FALSE(contains(training_page(report), "Cross-validation"));
  report.test_name = "cross-validated";
  report.folds = {{.fold = 1,
                   .folds = 2,
                   .training_images = 600,
                   .images = 600,
                   .correct = 570,
                   .loss = 0.125,
                   .seconds = 2},
                  {.fold = 2,
                   .folds = 2,
                   .training_images = 600,
                   .images = 600,
                   .correct = 588,
                   .loss = 0.25,
                   .seconds = 3}};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "<b>96.50 ± 2.12 %</b>"));
  EXPECT_TRUE(contains(html, "divided into 2 folds"));
  EXPECT_TRUE(contains(html, "had 50 % of the images"));
  EXPECT_TRUE(contains(html, "95.00 %"));
  EXPECT_TRUE(contains(html, "cross-validated accuracy"));
  const TrainingReport read = parse_training_report(to_json_text(report), "report.json");
  ASSERT_EQ(read.folds.size(), 2u);
  EXPECT_EQ(read.folds[1].correct, 588);
  EXPECT_EQ(read.folds[1].folds, 2);
  EXPECT_EQ(to_json_text(read), to_json_text(report));
}

TEST(TrainingPage, CurvesCalibrationAndRangeTest_HaveSections) {
  TrainingReport report = sample_run();
  report.curves = binary_curves(std::vector{0.1, 0.4, 0.35, 0.8}, std::vector<std::uint8_t>{0, 0, 1, 1});
  report.curves->positive = "bad <b>";
  report.curves->negative = "good";
  report.curves->threshold = 0.375;
  report.calibration = Calibration{
      .temperature = 1.5, .fitted_on = "validation", .fitted_count = 4, .same_images = true, .images = 4};
  report.calibration->before = report.calibration->after =
      reliability(std::vector{0.9f, 0.1f, 0.6f, 0.4f}, std::vector{0, 1}, 2);
  report.range_test = RangeTest{.rates = {1e-4, 1e-3, 1e-2}, .losses = {1, 0.5, 3}, .chosen = 1e-4};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "ROC curve: area 0.7500"));
  EXPECT_TRUE(contains(html, "average precision 0.8333"));
  EXPECT_TRUE(contains(html, "bad &lt;b&gt;"));
  EXPECT_TRUE(contains(html, "temperature of 1.5, which was fitted to 4 validation images"));
  EXPECT_TRUE(contains(html, "on the images that the temperature was fitted to"));
  EXPECT_TRUE(contains(html, "The run has a learning rate of 0.0001"));
  report.calibration->same_images = false;
  EXPECT_TRUE(contains(training_page(report), "which the temperature was not fitted to"));
  report.calibration->same_images.reset();
  EXPECT_TRUE(contains(training_page(report), "If the temperature was fitted to them"));
  const std::string json = to_json_text(report);
  EXPECT_TRUE(contains(json, "\"auc\":0.75"));
  EXPECT_TRUE(contains(json, "\"same_images\":null"));
  EXPECT_TRUE(contains(json, "\"chosen\":0.0001"));
  report.curves = binary_curves(std::vector{0.1, 0.4}, std::vector<std::uint8_t>{1, 1});
  EXPECT_FALSE(contains(training_page(report), "ROC curve"));
}

TEST(TrainingPage, IsOneSelfContainedWellFormedFile) {
  const std::string html = training_page(sample_run());
  EXPECT_EQ(body_fault(html), "");
  for (const char* outside : {"<script src", "<link", "@import", "url("})
    EXPECT_FALSE(contains(html, outside));
  EXPECT_EQ(count(html, "http"), count(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(html, "src="), count(html, "src=\"data:image/png;base64,"));
  EXPECT_TRUE(contains(html, "prefers-color-scheme:dark"));
  EXPECT_TRUE(contains(html, "name=\"viewport\""));
}

TEST(TrainingPage, Run_ShowsEveryFigure) {
  const std::string html = training_page(sample_run());
  for (const char* part :
       {"<b>97.05 %</b>", "<b>15</b><span>wrong of 1,200 test images", "1 h 02 min", "1 min 15 s", "Seed",
        "tandem train digits --epochs 2", "0.1234", "92.13 %", "24,000", "validation accuracy",
        "The kept weights are those of epoch 2", "cat predicted as dog, 7 times"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_EQ(count(html, "<svg class=\"plot wide\""), 3);  // loss, accuracy, and a learning rate that changes
  EXPECT_EQ(count(html, "<tr class=\"best\">"), 1);
}

std::string data_of(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = html.find(begin) + begin.size();
  return html.substr(from, html.find("</script>", from) - from);
}

TEST(TrainingPage, Curves_AreDataForTheScriptAndPlotsWithoutIt) {
  TrainingReport report = sample_run();
  report.val_name = "</script><b>";
  report.steps.add({.step = 10, .epoch = 1, .loss = 0.75, .memory_mb = 100});
  report.steps.add({.step = 20, .epoch = 1, .loss = 0.5, .memory_mb = 120});
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  const nlohmann::json data = nlohmann::json::parse(data_of(html));
  EXPECT_EQ(data.at("validated_on"), "</script><b>");
  EXPECT_EQ(data.at("curves").at("train_loss"), nlohmann::json::parse("[[1, 0.5], [2, 0.125]]"));
  EXPECT_EQ(data.at("curves").at("learning_rate"), nlohmann::json::parse("[[1, 0.1], [2, 0.05]]"));
  EXPECT_EQ(data.at("steps").at("loss"), nlohmann::json::parse("[[10, 0.75], [20, 0.5]]"));
  EXPECT_EQ(data.at("steps").at("device_memory_mb"), nlohmann::json::array());
  const std::size_t instead = html.find("<div class=\"static\">");
  EXPECT_LT(html.find("id=\"charts\""), instead);
  EXPECT_LT(instead, html.find("<svg class=\"plot wide\""));
  report.epochs[1].learning_rate = report.epochs[0].learning_rate;
  EXPECT_FALSE(nlohmann::json::parse(data_of(training_page(report))).at("curves").contains("learning_rate"));
  report.epochs.clear();
  EXPECT_FALSE(contains(training_page(report), "<script"));
}

TEST(TrainingPage, FirstImagesAndTimeline_HaveSections) {
  TrainingReport report = sample_run();
  EXPECT_FALSE(contains(training_page(report), "What the network saw"));
  EXPECT_FALSE(contains(training_page(report), "id=\"timeline\""));
  report.batch_sheet = "Man";
  report.batch_note = "Mixing <comes> after.";
  report.timeline = R"({"lanes": [{"name": "</script>", "names": ["x"], "spans": [[0, 1, 2, 1, 1]]}]})";
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "with their classes. Mixing &lt;comes&gt; after.</p>"));
  EXPECT_TRUE(contains(html, "src=\"data:image/jpeg;base64,TWFu\""));
  EXPECT_TRUE(contains(html, "<svg id=\"timeline\""));
  EXPECT_EQ(nlohmann::json::parse(data_of(html)).at("timeline"), nlohmann::json::parse(report.timeline));
  report.timeline = "{\"lanes\": [";  // cut off
  EXPECT_FALSE(nlohmann::json::parse(data_of(training_page(report))).contains("timeline"));
}

TEST(TrainingPage, Options_AreATable) {
  TrainingReport report = sample_run();
  EXPECT_FALSE(contains(training_page(report), "All options"));
  report.options = {{"lr", "0.5"}, {"augment", "<none>"}};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "<summary>All options</summary>"));
  EXPECT_TRUE(contains(html, "<th scope=\"row\">augment</th><td>&lt;none&gt;</td>"));
}

TEST(TrainingPage, PrecisionAndRecall_MatchConfusionMatrix) {
  const std::string html = training_page(sample_run());
  // cat: 90 of 100 images found, 90 of 95 predictions correct.
  EXPECT_TRUE(contains(html, "<tr><td>cat</td><td class=\"number\">100</td><td class=\"number\">90.00 %"));
  for (const char* part :
       {"94.74 %", "93.14 %", "99.70 %", "<td>dog (7)</td>", "<td>cat (5)</td>", "<td>–</td>"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_TRUE(contains(html, "title=\"dog predicted as cat: 5 (5.00 %)\">5</td>"));
  // Deepest red: the largest wrong share of a row. Deepest blue: a row that is all correct.
  EXPECT_TRUE(contains(html, "<td style=\"--s:0.55\" title=\"cat predicted as dog"));
  EXPECT_TRUE(contains(html, "<td class=\"right\" style=\"--s:0.50\" title=\"owl predicted as owl"));
}

TEST(TrainingPage, Images_AreEmbedded) {
  const std::string html = training_page(sample_run());
  EXPECT_TRUE(contains(html, "base64,TWFu\""));
  EXPECT_TRUE(contains(html, "base64,TQ==\""));
  EXPECT_TRUE(contains(
      html, "<b>cat</b> predicted as <b>dog</b><span>99.87 % confidence</span><span>image 41</span>"));
  TrainingReport report = sample_run();
  report.mistakes[0].file = std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1c\0\0\0\x1c", 24);
  report.mistakes[1].file = std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0", 24);
  EXPECT_EQ(count(training_page(report), "<img class=\"small\""), 1);  // 28 pixels wide, not 256
  report.mistakes[0].file = "\xff\xd8\xff";
  EXPECT_TRUE(contains(training_page(report), "src=\"data:image/jpeg;base64,/9j/\""));
}

TEST(TrainingPage, SparseReport_IsWellFormed) {
  TrainingReport report;
  report.title = "run";
  EXPECT_EQ(body_fault(training_page(report)), "");
  EXPECT_EQ(count(training_page(report), "<section"), 0);

  report.epochs = {{.epoch = 1, .train_loss = not_measured, .train_accuracy = 0.5, .learning_rate = 0.1}};
  std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_EQ(count(html, "<svg class=\"plot wide\""), 1);  // only the accuracy curve
  EXPECT_FALSE(contains(html, "nan"));
  EXPECT_FALSE(contains(html, "overfit"));

  report.classes = {"no", "yes"};
  report.confusion = {3, 0, 0, 0};
  html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "Nothing was confused."));
  EXPECT_FALSE(contains(html, "nan"));
}

// Every second class has no images; the others are predicted as themselves or as one of the next three.
TrainingReport run_with_classes(std::size_t classes) {
  TrainingReport report;
  report.confusion.assign(classes * classes, 0);
  for (std::size_t truth = 0; truth < classes; ++truth) {
    report.classes.push_back("class " + std::to_string(truth));
    for (std::size_t step = 0; step < 4 && truth % 2 == 0; ++step)
      report.confusion[truth * classes + (truth + step) % classes] =
          1 + static_cast<std::int64_t>((5 * truth + 3 * step) % 11);
  }
  return report;
}

TEST(TrainingPage, Cell_LinksToItsImages) {
  TrainingReport report = sample_run();
  report.cells = {
      {.truth = 0, .predicted = 1, .images = {report.mistakes[0]}},
      {.truth = 0, .predicted = 0, .images = {{.file = "abc", .truth = "cat", .predicted = "cat"}}}};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  const std::size_t classes = report.classes.size();
  for (std::size_t truth = 0; truth < classes; ++truth)
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const int expected = report.confusion[truth * classes + predicted] > 0 ? 1 : 0;
      const std::string cell = std::to_string(truth) + "-" + std::to_string(predicted) + "\"";
      for (const char* part : {" id=\"cell-", " href=\"#cell-", " id=\"from-", " href=\"#from-"})
        EXPECT_EQ(count(html, part + cell), expected) << part << cell;
    }
  for (const char* part : {"<b>cat</b> predicted as <b>dog</b>: 1 of 7 images shown, the most confident",
                           "<b>owl</b> predicted as <b>owl</b>: 0 of 1,000 images shown, to keep",
                           "title=\"cat predicted as dog: 7 (7.00 %)\">7</a>", "base64,YWJj\""})
    EXPECT_TRUE(contains(html, part)) << part;
}

TEST(TrainingPage, Links_HaveTargetsAndIdsAreUnique) {
  for (const std::size_t classes : {2, 30, 31}) {
    TrainingReport report = run_with_classes(classes);
    report.epochs = sample_run().epochs;
    report.cells = {{.truth = 0, .predicted = 1, .images = {{.file = "abc"}}}};
    const std::string html = training_page(report);
    EXPECT_EQ(body_fault(html), "") << classes;
    std::vector<std::string> ids = attribute_values(html, "id");
    for (const std::string& href : attribute_values(html, "href"))
      EXPECT_EQ(std::ranges::count(ids, href.substr(1)), 1) << href;
    std::ranges::sort(ids);
    EXPECT_TRUE(std::ranges::adjacent_find(ids) == ids.end()) << classes;
    EXPECT_EQ(count(html, "<table class=\"confusion\">"), classes <= 30 ? 1 : 0);
    EXPECT_EQ(count(html, "<table class=\"confusions\">"), classes <= 30 ? 0 : 1);
  }
}

TEST(TrainingPage, Matrix_CountsSumToImages) {
  TrainingReport report = run_with_classes(30);
  report.cells = {{.truth = 0, .predicted = 1, .images = {{.file = "abc"}}}};
  const std::string html = training_page(report);
  std::int64_t sum = 0, images = 0;
  for (std::size_t at = html.find("<a id=\"from-"); at != std::string::npos;
       at = html.find("<a id=\"from-", at + 1))
    sum += std::stoll(html.substr(html.find('>', at) + 1));
  for (const std::int64_t cell : report.confusion) images += cell;
  EXPECT_EQ(sum, images);
}

TEST(TrainingPage, WideMatrix_HasHint) {
  // 30 columns of 30 pixels, names of 8 letters in 82 pixels, 12 around them.
  const std::string html = training_page(run_with_classes(30));
  EXPECT_TRUE(contains(html, "<p class=\"hint\">"));
  EXPECT_TRUE(contains(html, ".confusion{--classes:30;--cell:30px;--names:82px;--narrow:82px}"));
  EXPECT_TRUE(contains(html, "and (max-width:993px){.hint{display:block}}"));
}

TEST(TrainingPage, ManyClasses_ListsMostFrequentConfusions) {
  TrainingReport report = run_with_classes(40);
  report.confusion[7] = 99;
  report.cells = {{.truth = 0, .predicted = 7, .images = {{.file = "Man", .name = "a<b"}, {.file = "M"}}}};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_TRUE(contains(html, "The 30 most frequent of 61 confusions between 40 classes."));
  const std::size_t from = html.find("<table class=\"confusions\">");
  const std::string list = html.substr(from, html.find("</table>", from) - from);
  EXPECT_EQ(count(list, "<tr><td>"), 30);
  EXPECT_TRUE(contains(list, "<tbody>\n<tr><td>class 0</td><td>class 7</td><td class=\"number\">99</td>"));
  EXPECT_TRUE(contains(list, "81.82 %"));  // 99 of 99 + 1 + 4 + 7 + 10
  EXPECT_EQ(count(list, "<img"), 2);
  EXPECT_TRUE(contains(list, "base64,TQ==\"/><span>2 of 99</span>"));
  EXPECT_EQ(count(list, "<span>0 of "), 29);
  std::int64_t previous = 100;
  for (std::size_t at = list.find("<td class=\"number\">"); at != std::string::npos;) {
    const std::int64_t images = std::stoll(list.substr(at + 19));
    EXPECT_LE(images, previous);
    previous = images;
    at = list.find("<td class=\"number\">", list.find("</tr>", at));
  }
}

TEST(TrainingPage, LongRun_ThinnedOnPaperOnly) {
  TrainingReport report;
  for (int epoch = 1; epoch <= 100; ++epoch) report.epochs.push_back({.epoch = epoch});
  report.best_epoch = 50;
  const std::string html = training_page(report);
  EXPECT_EQ(count(html, "<tr><td") + count(html, "<tr class=\"left-out\">") + 1, 100);
  EXPECT_EQ(count(html, "<tr><td"), 35);  // the first, every third and the last
  EXPECT_TRUE(contains(html, "<tr class=\"best\"><td class=\"number\">50</td>"));
  EXPECT_TRUE(contains(html, "One of 3 epochs is printed"));
  EXPECT_FALSE(contains(html, "epochs is shown"));
  EXPECT_FALSE(contains(training_page(sample_run()), "left-out\">"));
}

TEST(TrainingPage, ThousandsOfEpochs_PageStaysSmall) {
  const auto page_of = [](int epochs) {
    TrainingReport report;
    for (int epoch = 1; epoch <= epochs; ++epoch)
      report.epochs.push_back({.epoch = epoch,
                               .train_loss = 1.0 / epoch,
                               .train_accuracy = 0.5,
                               .val_loss = epoch % 2 + 1.0 / epoch,
                               .val_accuracy = 0.25});
    report.best_epoch = epochs - 3;
    return training_page(report);
  };
  const std::string html = page_of(5000);
  EXPECT_LE(count(html, "<tr><td") + count(html, "<tr class=\"left-out\">"), 600);
  for (const char* const row :
       {"<tr><td class=\"number\">1</td>", "<tr class=\"best\"><td class=\"number\">4997</td>",
        "<tr><td class=\"number\">5000</td>"})
    EXPECT_TRUE(contains(html, row)) << row;
  EXPECT_TRUE(contains(html, "One of 10 epochs is shown; log.csv has all."));
  EXPECT_LT(static_cast<double>(page_of(20000).size()), 1.1 * static_cast<double>(html.size()));
}

TEST(TrainingPage, UserText_IsEscaped) {
  TrainingReport report = sample_run();
  const std::string bad = "<b>&\"x'";
  report.title = report.command = report.val_name = report.mistakes[0].truth = report.mistakes[0].predicted =
      bad;
  report.classes = {bad, bad, bad};
  const std::string html = training_page(report);
  EXPECT_EQ(body_fault(html), "");
  EXPECT_FALSE(contains(html, bad));
}

TEST(TrainingPage, ConfusionOfWrongSize_ThrowsInternalError) {
  TrainingReport report = sample_run();
  report.confusion.pop_back();
  EXPECT_THROW((void)training_page(report), InternalError);
}

TEST(EpochCsv, OneColumnPerFigure) {
  const std::string header = epoch_csv_header();
  EXPECT_EQ(header,
            "epoch,train_loss,train_accuracy,val_loss,val_accuracy,learning_rate,seconds,samples_per_second,"
            "waited_seconds\n");
  const std::string row = epoch_csv_row(sample_run().epochs[0]);
  EXPECT_EQ(row, "1,0.5,0.85,0.25,0.9213,0.1,2.5,24000,0.125\n");
  const std::string sparse = epoch_csv_row({.epoch = 3, .train_loss = 0.1 + 0.2});
  EXPECT_EQ(sparse, "3,0.30000000000000004,,,,,,,\n");
  EXPECT_EQ(std::count(sparse.begin(), sparse.end(), ','), std::count(header.begin(), header.end(), ','));
}

TEST(EpochCsv, Shards_AddTheTimeOfTheExchange) {
  const std::vector<std::string> metrics{"own"};
  const std::string header = epoch_csv_header(metrics, true);
  EXPECT_TRUE(header.ends_with(",waited_seconds,exchange_seconds,own\n")) << header;
  const EpochRecord record{.epoch = 3, .exchange_seconds = 0.5, .metrics = {{"own", 2}}};
  EXPECT_EQ(epoch_csv_row(record, true), "3,,,,,,,,,0.5,2\n");
  EXPECT_EQ(epoch_csv_row({.epoch = 3}, true), "3,,,,,,,,,\n");  // not measured
}

TEST(TrainingPage, Exchange_IsAColumnWhereItWasMeasured) {
  TrainingReport report = sample_run();
  const std::string column = "<th class=\"number\" scope=\"col\">exchange</th>";
  EXPECT_FALSE(contains(training_page(report), column));
  report.epochs[0].exchange_seconds = 0;  // one rank
  EXPECT_FALSE(contains(training_page(report), column));
  report.epochs.back().exchange_seconds = 1.5;
  EXPECT_TRUE(contains(training_page(report), column));
  EXPECT_TRUE(contains(training_page(report), "“exchange” that between the ranks"));
  EXPECT_EQ(parse_training_report(to_json_text(report), "run").epochs.back().exchange_seconds, 1.5);
}

}  // namespace
}  // namespace tandem
