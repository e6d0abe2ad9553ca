// tandem compare on runs and studies that the program made.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CompareCommand : public testing::Test {
 protected:
  void train(const std::string& name, Words more) {
    Words words{"train", "digits", "--limit", "200", "--epochs", "2", "--device", "cpu", "--out", name};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run_program(words, folder_.path());
    ASSERT_EQ(result.status, 0) << result.err;
  }
  ProgramResult compare(Words words) {
    words.insert(words.begin(), "compare");
    return run_program(words, folder_.path());
  }
  // A line of error that contains `part`, and nothing on standard output.
  void expect_error(const Words& words, const std::string& part, int status = 1) {
    const ProgramResult result = compare(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, part)) << result.err;
  }

  TempFolder folder_;
};

TEST_F(CompareCommand, TwoRuns_AsTextPageAndJson) {
  train("a", {});
  train("b", {"--lr", "0.25"});
  const ProgramResult text = compare({"a", "b", "--html", "ab.html"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "1 option differs: lr.")) << text.out;
  EXPECT_TRUE(contains(text.out, "test accuracy")) << text.out;
  EXPECT_TRUE(contains(text.err, "Wrote ab.html")) << text.err;
  EXPECT_TRUE(contains(text_of(folder_ / "ab.html"), "lr ≠"));
  const ProgramResult json = compare({"a", "b", "--json"});
  EXPECT_EQ(json.status, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["differing_options"], (Words{"lr"}));
  EXPECT_EQ(parsed["runs"][1]["report"]["epochs"].size(), 2U);
  // The log has the same figures.
  const double accuracy = parsed["runs"][0]["report"]["epochs"][1]["val_accuracy"];
  EXPECT_TRUE(contains(text_of(folder_ / "a/log.csv"), nlohmann::json(accuracy).dump()))
      << accuracy << "\n"
      << text_of(folder_ / "a/log.csv");
}

TEST_F(CompareCommand, SameRunTwice_DiffersInNothing) {
  train("a", {});
  const ProgramResult result = compare({"a", "a"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result.out, "All options are equal.")) << result.out;
  EXPECT_TRUE(contains(result.out, "All test accuracies are equal")) << result.out;
}

TEST_F(CompareCommand, Studies_FromTheirJson) {
  for (const char* const name : {"a.json", "b.json"})
    ASSERT_EQ(run_program({"study", "max", "--cases", "100x100 i32", "--device", "cpu", "--json", name},
                          folder_.path())
                  .status,
              0);
  const ProgramResult result = compare({"a.json", "b.json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "max 100x100 i32")) << result.out;
  EXPECT_TRUE(contains(result.out, "B is faster than A in ")) << result.out;
}

TEST_F(CompareCommand, BadInput_IsOneLine) {
  train("a", {});
  expect_error({"a"}, "RUN", 2);
  expect_error({"a", "b"}, "b: no such run folder or study file");
  std::filesystem::create_directory(folder_ / "empty");
  expect_error({"a", "empty"}, "empty: expected the folder of a training run, it has no config.toml");
  std::ofstream(folder_ / "study.json") << "{}";
  expect_error({"a", "study.json"}, "expected run folders or files of studies, got both");
  expect_error({"study.json", "study.json"}, "study.json: expected the JSON of a study");
  expect_error({"a", "a", "--html", "missing/x.html"}, "missing/x.html");
  std::filesystem::resize_file(folder_ / "a/report.json", 100);
  expect_error({"a", "a"}, "a/report.json: expected the report of a training run");
}

}  // namespace
}  // namespace tandem
