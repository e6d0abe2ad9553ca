// tandem probe, run as a program.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ProbeCommand : public testing::Test {
 protected:
  ProgramResult probe(Words words) {
    words.insert(words.begin(), "probe");
    return run_program(words, folder_.path());
  }
  // One line of error that contains `part`, and nothing on standard output.
  void expect_error(const Words& words, const std::string& part, int status = 1) {
    const ProgramResult result = probe(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, part)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  TempFolder folder_;
};

TEST_F(ProbeCommand, ModelsAndData_InAnyPlaceAmongFlags) {
  const ProgramResult trained = run_program({"train", "digits", "--model", "cnn", "--limit", "64", "--epochs",
                                             "1", "--device", "cpu", "--out", "run", "-q"},
                                            folder_.path());
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Words flags{"--model", "cnn", "--image-size", "16",  "--limit", "40",
                    "--draws", "2",   "--device",     "cpu", "--json",  "p.json"};
  Words words{"random", "--per-class", "2,5", "run", "digits"};
  words.insert(words.end(), flags.begin(), flags.end());
  const ProgramResult result = probe(words);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"Features on 40 test images of digits, 10 classes", "Chance: 10.0 %",
                           "cnn, random, statistics of 512 images", "cnn, epoch 1 on digits",
                           "\n2 labeled images per class\n", "\n5 labeled images per class\n",
                           "Difference to random on the same images, in points (95 % interval)"})
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
  const auto json = nlohmann::json::parse(text_of(folder_ / "p.json"));
  ASSERT_EQ(json["models"].size(), 2U);
  EXPECT_EQ(json["models"][0]["input"], "16x16 RGB");
  EXPECT_EQ(json["models"][1]["model"], "run");
  EXPECT_EQ(json["models"][1]["input"], "16x16 gray");
  EXPECT_EQ(json["models"][1]["results"][1]["nearest_neighbors"]["accuracies"].size(), 2U);
}

TEST_F(ProbeCommand, Plates_AreRendered) {
  const ProgramResult result = probe({"random", "plates", "--model", "cnn", "--image-size", "16", "--limit",
                                      "10", "--per-class", "3", "--draws", "2", "--device", "cpu", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["classes"], 2);
  EXPECT_EQ(json["images"], 10);
}

TEST_F(ProbeCommand, BadInput_IsOneLine) {
  write_photos(folder_ / "photos", 7);
  std::filesystem::create_directories(folder_ / "one");
  std::filesystem::copy(folder_ / "photos/red", folder_ / "one/red");
  expect_error({"random", "photos", "--per-class", "10,0"}, "--per-class: expected a whole number from 1", 2);
  expect_error({"random", "photos", "--draws", "0"}, "--draws: expected a whole number from 1", 2);
  expect_error({"random"}, "DATA is required", 2);
  expect_error({}, "MODEL is required", 2);
  expect_error({"random", "photos", "--model", "resnet"}, "--model: expected one of mlp, cnn, resnet18", 2);
  expect_error({"random", "photos", "--per-class", "6"},
               "expected 6 or more training images of every class, got 5 of 'blue'");
  expect_error({"random", "one"}, "expected two or more classes, got one: 'red'");
  expect_error({"random", "nothing"}, "got 'nothing'");
  expect_error({"photos", "photos", "--per-class", "2"},
               "expected a model file or the folder of a run, got a folder without best.safetensors");
  put_bytes(folder_ / "weights.pth", "no weights");
  expect_error({"weights.pth", "photos", "--per-class", "2"}, "expected a safetensors or PyTorch file");
  for (const char* name : {"blue", "red"})
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "photos" / name))
      put_bytes(file.path(), "no image");
  expect_error({"random", "photos", "--per-class", "2"}, "expected photographs that can be read, got none");
}

TEST_F(ProbeCommand, ModelWithoutBackbone_IsRefused) {
  const ProgramResult trained = run_program(
      {"train", "digits", "--limit", "50", "--epochs", "1", "--device", "cpu", "--out", "mlp", "-q"},
      folder_.path());
  ASSERT_EQ(trained.status, 0) << trained.err;
  expect_error({"mlp", "digits"},
               "mlp: expected a model with a backbone, such as cnn or resnet18, got mlp 784");
}

}  // namespace
}  // namespace tandem
