// The text and the JSON of a probe.
#include "tandem/report/probe_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

ProbeReport two_models() {
  ProbeReport report{.data = "mnist",
                     .tested_on = "test",
                     .test_images = 10000,
                     .classes = 10,
                     .majority_share = 0.1135,
                     .draws = 2,
                     .seed = 1,
                     .penalty = 3e-5,
                     .not_read = {},
                     .models = {}};
  report.models.push_back({.name = "random",
                           .architecture = "resnet18",
                           .weights = "random, statistics of 512 images",
                           .input = "112x112 RGB",
                           .features = 896,
                           .results = {{.per_class = 10,
                                        .linear = {.accuracies = {0.64, 0.66}, .difference = {}},
                                        .nearest = {.accuracies = {0.5, 0.5}, .difference = {}}}}});
  report.models.push_back(report.models[0]);
  ProbedModel& second = report.models[1];
  second.name = "runs/a-run-with-a-name-that-is-much-longer-than-a-table-can-show-in-one-column";
  second.results[0].linear = {.accuracies = {0.7, 0.8},
                              .difference = ProbeDifference{.mean = 0.1, .interval = {-0.02, 0.22}}};
  second.results[0].nearest.difference = ProbeDifference{.mean = 0, .interval = {0, 0}};
  return report;
}

TEST(ProbeReport, Text_ShowsMeansDeviationsAndDifferences) {
  const std::string text = probe_text(two_models(), {.width = 80});
  for (const char* part :
       {"Features on 10,000 test images of mnist, 10 classes\n", "Chance: 10.0 %", "class: 11.3 %\n",
        "resnet18, random", "112x112 RGB", "\n10 labeled images per class\n", "65.0 ± 1.4 %", "50.0 ± 0.0 %",
        "75.0 ± 7.1 %", "Difference to random on the same images", "+10.0 (-2.0 to +22.0)",
        "+0.0 (+0.0 to +0.0)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

TEST(ProbeReport, OneDrawOfOneModel_HasNoDeviationAndNoDifference) {
  ProbeReport report = two_models();
  report.draws = 1;
  report.models.pop_back();
  report.models[0].results[0].linear.accuracies = {0.64};
  report.not_read.assign(7, "a.png: cut short");
  const std::string text = probe_text(report, {.width = 80});
  EXPECT_NE(text.find(" 64.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("Difference"), std::string::npos) << text;
  EXPECT_NE(text.find("Not read: a.png: cut short\n… and 2 more, listed in the JSON result\n"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(probe_json(report));
  EXPECT_TRUE(json["models"][0]["results"][0]["linear_probe"]["deviation"].is_null());
  EXPECT_EQ(json["not_read"].size(), 7U);
}

TEST(ProbeReport, Json_HasEveryFigure) {
  const auto json = nlohmann::json::parse(probe_json(two_models()));
  EXPECT_EQ(json["chance"], 0.1);
  EXPECT_EQ(json["majority_share"], 0.1135);
  EXPECT_EQ(json["images"], 10000);
  const auto& first = json["models"][0]["results"][0]["linear_probe"];
  EXPECT_EQ(first["accuracies"], (std::vector<double>{0.64, 0.66}));
  EXPECT_FALSE(first.contains("difference"));
  const auto& second = json["models"][1]["results"][0]["linear_probe"];
  EXPECT_EQ(second["accuracy"], 0.75);
  EXPECT_EQ(second["difference"]["interval"], (std::vector<double>{-0.02, 0.22}));
}

}  // namespace
}  // namespace tandem
