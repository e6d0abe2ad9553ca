// The options of the training step on the command line: class weights, focal loss, balanced sampling, clipped
// gradients, averaged weights, accumulation, frozen stages and their rates.
#include <gtest/gtest.h>

#include "tests/apps/program.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

class StepOptionsCommand : public testing::Test {
 protected:
  StepOptionsCommand() { write_small_digits(folder_ / "data"); }

  ProgramResult run(const Words& more) {
    Words words{"train", "data", "--model", "lenet", "--limit", "60", "--epochs", "2", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, folder_.path());
  }
  void expect_error(const Words& more, const std::string& line) {
    const ProgramResult result = run(more);
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(result.err.ends_with("tandem: error: " + line + "\n")) << result.err;
  }
  void expect_usage(const Words& more, const std::string& line) {
    const ProgramResult result = run(more);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, "tandem: error: " + line + " (see tandem train --help)\n");
  }
  bool has(const std::string& file, const std::string& text) const {
    return get_bytes(folder_ / file).find(text) != std::string::npos;
  }

  TempFolder folder_;
};

TEST_F(StepOptionsCommand, AllOptions_AreInTheLogTheConfigurationAndTheReport) {
  const ProgramResult result =
      run({"--class-weights", "0=2,9=0.5", "--balanced-sampling", "--loss", "focal", "--focal-gamma", "1.5",
           "--clip-norm", "0.5", "--ema", "0.9", "--stage-lr-decay", "0.5", "--freeze", "1", "--unfreeze-at",
           "2", "--out", "r"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* const line : {"Class weights: 0 2, 1 1,", "Sampling: every class equally often",
                                 "Gradients: clipped to a norm of 0.5", "Averaged weights: decay 0.9",
                                 "Stage rates: each stage has 0.5 times the learning rate of the next",
                                 "All layers are trained from epoch 2 on"})
    EXPECT_NE(result.err.find(line), std::string::npos) << line << "\n" << result.err;
  for (const char* const entry :
       {"class_weights = \"0=2,9=0.5\"", "balanced_sampling = true", "loss = \"focal\"", "focal_gamma = 1.5",
        "clip_norm = 0.5", "ema = 0.9", "stage_lr_decay = 0.5", "freeze = 1", "unfreeze_at = 2"})
    EXPECT_TRUE(has("r/config.toml", entry)) << entry;
  for (const char* const text :
       {"focal, gamma 1.5", "class weights", "every class equally often", "clipped to a norm of 0.5",
        "decay 0.9", "the first stage frozen before epoch 2"})
    EXPECT_TRUE(has("r/report.html", text)) << text;
  const ProgramResult other = run({"--resume", "r", "--clip-norm", "1"});
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("clip_norm (1.0, was 0.5)"), std::string::npos) << other.err;
  EXPECT_EQ(run_program({"predict", "r", "data/t10k-images-idx3-ubyte"}, folder_.path()).status, 0);
}

TEST_F(StepOptionsCommand, Freeze_TakesANumberOrNothing) {
  const auto frozen = [&](const Words& words, const std::string& name) {
    Words all{"train"};
    all.insert(all.end(), words.begin(), words.end());
    for (const char* const word :
         {"--model", "lenet", "--limit", "30", "--epochs", "1", "--device", "cpu", "--out"})
      all.emplace_back(word);
    all.push_back(name);
    const ProgramResult result = run_program(all, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    const std::string config = get_bytes(folder_ / (name + "/config.toml"));
    const std::size_t begin = config.find("\nfreeze = ") + 10;
    return config.substr(begin, config.find('\n', begin) - begin);
  };
  EXPECT_EQ(frozen({"data"}, "a"), "false");
  EXPECT_EQ(frozen({"--freeze", "data"}, "b"), "true");
  EXPECT_EQ(frozen({"data", "--freeze"}, "c"), "true");
  EXPECT_EQ(frozen({"--freeze", "2", "data"}, "d"), "2");
  EXPECT_EQ(frozen({"data", "--freeze=3"}, "e"), "3");
  EXPECT_EQ(frozen({"data", "--freeze=false"}, "f"), "false");
}

TEST_F(StepOptionsCommand, AccumulatedBatch_IsTheBatch) {
  const auto log = [&](const Words& more, const std::string& name) {
    Words words{"--batch-size", "16", "--out", name};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return weights_of(read_safetensors(folder_ / (name + "/best.safetensors")));
  };
  const auto whole = log({}, "whole");
  for (const char* const parts : {"4", "5"}) {
    const auto accumulated = log({"--accumulate", parts}, std::string("in") + parts);
    ASSERT_EQ(accumulated.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::size_t k = 0; k < whole[i].second.size(); ++k)
        ASSERT_NEAR(accumulated[i].second[k], whole[i].second[k], 2e-5) << parts << " " << whole[i].first;
  }
}

TEST_F(StepOptionsCommand, BadInput) {
  expect_usage({"--class-weights", "0=-1"},
               "--class-weights: expected a finite weight of 0 or more for '0', got -1");
  expect_usage({"--class-weights", "many"},
               "--class-weights: expected none, balanced or weights such as cat=2,dog=0.5, got 'many'");
  expect_usage({"--focal-gamma", "-1"}, "--focal-gamma: expected a number of 0 or more, got '-1.0'");
  expect_usage({"--clip-norm", "-1"}, "--clip-norm: expected a number of 0 or more, got '-1.0'");
  expect_usage({"--ema", "1"}, "--ema: expected a number of 0 or more and below 1, got '1.0'");
  expect_usage({"--freeze", "0"}, "--freeze: expected true, false or a number of stages from 1, got '0'");
  expect_usage({"--freeze=some"}, "--freeze: expected true, false or a number of stages from 1, got 'some'");
  expect_usage({"--stage-lr-decay", "0"}, "--stage-lr-decay: expected a number above 0, got '0.0'");
  expect_error({"--class-weights", "cat=2"}, "[train] class_weights: the data has no class 'cat'");
  expect_error({"--loss", "focal", "--mixup", "0.2"},
               "[train] mixup and cutmix require loss cross-entropy, got focal");
  expect_error({"--freeze", "4"}, "[freeze] expected 0 to 3 stages, as many as the model has, got 4");
  expect_error({"--unfreeze-at", "2"}, "[train] unfreeze_at requires freeze: no layer is frozen");
  expect_error({"--freeze", "--unfreeze-at", "3"},
               "[train] expected unfreeze_at from 2 to 2, the last epoch, got 3");
  expect_error({"--stage-lr-decay", "0.5", "--optimizer", "rmsprop"},
               "[train] stage_lr_decay requires optimizer sgd, adam or adamw, got rmsprop");
  expect_error({"--batch-size", "4", "--accumulate", "5"},
               "[train] expected --accumulate of at most 4, the images of a batch, got 5");
  EXPECT_EQ(folder_.count(), 1u);
}

}  // namespace
}  // namespace tandem
