#include "tandem/report/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report_fixture.h"
#include "tandem/core/build_info.h"
#include "tandem/report/provenance.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

TEST(ReportJson, Row_HasExactlyTheSpecifiedKeys) {
  const Json study = Json::parse(to_json_text(sample_report()));
  EXPECT_EQ(keys(study), (std::vector<std::string>{"study", "machine", "rows"}));
  EXPECT_EQ(study["study"], "max");
  EXPECT_EQ(study["machine"], (Json{{"CPU", "Some CPU"}, {"cores", "2"}}));
  ASSERT_EQ(study["rows"].size(), 4u);
  EXPECT_EQ(keys(study["rows"][1]),
            (std::vector<std::string>{"case", "version", "device", "median_ms", "min_ms", "max_ms",
                                      "with_copies_ms", "speedup", "gb_per_s", "gflop_per_s", "share_of_peak",
                                      "agrees", "max_error", "threads"}));
  EXPECT_EQ(study["rows"][1]["case"], "1000×1000 i32");
  EXPECT_EQ(study["rows"][1]["agrees"], true);
  EXPECT_EQ(study["rows"][1]["threads"], 4);
}

TEST(ReportJson, Provenance_AndVersionsAreObjects) {
  StudyReport report = sample_report();
  report.provenance = provenance("tandem study max", 3);
  report.versions = {{"cuda", "tuned"}};
  const Json study = Json::parse(to_json_text(report));
  EXPECT_EQ(keys(study), (std::vector<std::string>{"study", "machine", "provenance", "versions", "rows"}));
  EXPECT_EQ(keys(study["provenance"]),
            (std::vector<std::string>{"command", "version", "commit", "date", "host", "load", "seed"}));
  EXPECT_EQ(study["provenance"]["command"], "tandem study max");
  EXPECT_EQ(study["provenance"]["version"], build_info().version);
  EXPECT_EQ(study["versions"], (Json{{"cuda", "tuned"}}));
}

TEST(ReportJson, AbsentFigures_AreLeftOut) {
  const Json study = Json::parse(to_json_text(sample_report()));
  EXPECT_EQ(keys(study["rows"][0]), (std::vector<std::string>{"case", "version", "device", "median_ms",
                                                              "min_ms", "max_ms", "agrees"}));
}

TEST(ReportJson, TrainingRow_HasSamplesAndEngine) {
  StudyReport report = sample_report();
  report.rows[0].figures["samples_per_s"] = 1234.5;
  report.rows[0].engine = "perceptron on the CPU, 2 threads";
  const Json row = Json::parse(to_json_text(report))["rows"][0];
  EXPECT_EQ(row["samples_per_s"], 1234.5);
  EXPECT_EQ(row["engine"], "perceptron on the CPU, 2 threads");
}

TEST(ReportJson, WorkerAndAccuracyRows_HaveTheirOwnKeys) {
  StudyReport report = sample_report();
  report.rows[0].workers = 4;
  report.rows[0].figures["waited_ms"] = 12.5;
  report.rows[0].figures["efficiency"] = 0.75;
  report.rows[2].epoch = 3;
  report.rows[2].figures["plain"] = 0.9;
  report.rows[2].figures["plain_spread"] = 0.01;
  report.rows[2].figures["augmented"] = 0.65;
  report.rows[2].figures["lead"] = -0.25;
  report.rows[2].figures["lead_spread"] = 0.5;
  report.settings = {{"layers", "784,200,10"}};
  const Json rows = Json::parse(to_json_text(report))["rows"];
  EXPECT_EQ(rows[0]["workers"], 4);
  EXPECT_EQ(rows[0]["waited_ms"], 12.5);
  EXPECT_EQ(rows[0]["efficiency"], 0.75);
  EXPECT_EQ(rows[2]["epoch"], 3);
  EXPECT_EQ(rows[2]["plain"], 0.9);
  EXPECT_EQ(rows[2]["plain_spread"], 0.01);
  EXPECT_EQ(rows[2]["augmented"], 0.65);
  EXPECT_EQ(rows[2]["lead"], -0.25);
  EXPECT_EQ(rows[2]["lead_spread"], 0.5);
  EXPECT_EQ(Json::parse(to_json_text(report))["settings"]["layers"], "784,200,10");
  EXPECT_EQ(parse_studies(to_json_text(report), "F.json")[0].settings[0].value, "784,200,10");
}

TEST(ReportJson, NonFiniteFigures_AreLeftOut) {
  StudyReport report = sample_report();
  report.rows[1].figures["speedup"] = std::numeric_limits<double>::infinity();
  report.rows[1].figures["max_error"] = std::numeric_limits<double>::quiet_NaN();
  const std::string text = to_json_text(report);
  const Json row = Json::parse(text)["rows"][1];
  EXPECT_FALSE(row.contains("speedup"));
  EXPECT_FALSE(row.contains("max_error"));
  EXPECT_FALSE(contains(text, "null"));
}

TEST(ReportJson, Numbers_RoundTripExactly) {
  StudyReport report = sample_report();
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.125}) {
    report.rows[0].figures["median_ms"] = value;
    EXPECT_EQ(Json::parse(to_json_text(report))["rows"][0]["median_ms"].get<double>(), value);
  }
}

TEST(ReportJson, UnusualStrings_StayValid) {
  StudyReport report = sample_report();
  report.rows[0].case_name = "quote \" slash \\ line\n ×";
  report.rows[0].version = "broken \xFF";
  const Json row = Json::parse(to_json_text(report))["rows"][0];
  EXPECT_EQ(row["case"], "quote \" slash \\ line\n ×");
  EXPECT_EQ(row["version"], "broken \uFFFD");
}

TEST(ReportJson, DuplicateFactNames_AreAllKept) {
  StudyReport report = sample_report();
  report.machine = {{"GPU", "first"}, {"GPU", "second"}};
  EXPECT_EQ(Json::parse(to_json_text(report))["machine"], (Json{{"GPU", "first"}, {"GPU 2", "second"}}));
}

TEST(ReportJson, SeveralStudies_AreAnArray) {
  const std::vector<StudyReport> reports{sample_report(), sample_report()};
  const Json all = Json::parse(to_json_text(reports));
  EXPECT_EQ(keys(all), (std::vector<std::string>{"studies"}));
  ASSERT_EQ(all["studies"].size(), 2u);
  EXPECT_EQ(all["studies"][1], Json::parse(to_json_text(reports[1])));
}

TEST(ReportJson, EmptyStudy_HasEmptyParts) {
  const Json study = Json::parse(to_json_text(StudyReport{}));
  EXPECT_EQ(study["machine"], Json::object());
  EXPECT_EQ(study["rows"], Json::array());
}

}  // namespace
}  // namespace tandem
