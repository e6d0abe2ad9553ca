#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tandem/files/safetensors.h"
#include "tests/apps/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

Words small_run(const std::string& out, const Words& more = {}) {
  Words words{"pretrain", "scenes", "--model", "cnn",          "--steps", "4",        "-b",
              "4",        "-o",     out,       "--image-size", "16",      "--device", "cpu"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(PretrainCommand, WritesWeights_ThatTrainTakes) {
  const TempFolder folder;
  const ProgramResult run = run_program(small_run("run"), folder.path());
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Weights: run/backbone.safetensors"), std::string::npos) << run.out;
  const TensorFile file = read_safetensors(folder.path() / "run" / "backbone.safetensors");
  EXPECT_EQ(file.metadata.at("tandem.command"),
            "tandem pretrain scenes --model cnn --steps 4 -b 4 --image-size 16 --device cpu");
  const ProgramResult train =
      run_program({"train", "plates", "--model", "cnn", "--pretrained", "run/backbone.safetensors", "--limit",
                   "8", "--epochs", "1", "--image-size", "16", "-o", "trained", "--device", "cpu"},
                  folder.path());
  EXPECT_EQ(train.status, 0) << train.err;
  const ProgramResult again = run_program(small_run("run"), folder.path());
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("run is not empty"), std::string::npos) << again.err;
}

TEST(PretrainCommand, Resume_NeedsTheFolderOfAPretraining) {
  const TempFolder folder;
  const ProgramResult nothing = run_program({"pretrain", "--resume", "runs/nothing"}, folder.path());
  EXPECT_EQ(nothing.status, 1);
  EXPECT_NE(nothing.err.find("runs/nothing"), std::string::npos) << nothing.err;
  const ProgramResult both = run_program({"pretrain", "--resume", "run", "--steps", "4"}, folder.path());
  EXPECT_EQ(both.status, 2) << both.err;
  const ProgramResult no_data = run_program({"pretrain"}, folder.path());
  EXPECT_EQ(no_data.status, 2) << no_data.err;
}

}  // namespace
}  // namespace tandem
