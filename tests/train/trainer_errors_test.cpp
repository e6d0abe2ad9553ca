// The training loop: bad input is refused, and a failure loses nothing.
#include <unistd.h>

#include <fmt/format.h>

#include "tandem/data/dataset_registry.h"
#include "tandem/files/read_file.h"
#include "tandem/train/run_status.h"
#include "tests/train/trainer_case.h"

namespace tandem {
namespace {

using TrainerErrors = TrainerCase;

TEST_F(TrainerErrors, RunFolderInUse_IsRefusedAndLeftAlone) {
  const std::string in_use = "[train] " + path("run") + " is in use by process " + std::to_string(getpid());
  std::vector<std::string> errors;
  run("run", false, {.on_epoch = [&](const EpochRecord& record) {
        if (record.epoch != 2) return;
        put_bytes(folder_ / "run/.tandem-1-0.tmp", "of the first run");
        TrainOptions second = options_;
        for (const bool resume : {true, false}) {
          second.resume = resume;
          errors.push_back(error_text([&] { train(second); }));
        }
        EXPECT_EQ(get_bytes(folder_ / "run/.tandem-1-0.tmp"), "of the first run");
      }});
  EXPECT_EQ(errors, (std::vector<std::string>{in_use, in_use}));
  EXPECT_EQ(run("run", true).epochs.size(), 4u);  // the lock is released
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/.tandem-1-0.tmp"));
}

TEST_F(TrainerErrors, RunFolderInUse_IsRefused) {
  run("run");
  EXPECT_EQ(run_error("run"),
            "[train] " + path("run") + " is not empty: expected a new or empty run folder, or resume = true");
  put_bytes(folder_ / "file", "x");
  EXPECT_EQ(run_error("file"), "[train] " + path("file") + " is not a folder");
}

TEST_F(TrainerErrors, CheckpointOfAnotherConfiguration_IsRefused) {
  run("run");
  const std::string before = get_bytes(folder_ / "run/last.ckpt");
  options_.layers = {784, 20, 10};
  options_.learning_rate = 0.25;
  EXPECT_EQ(run_error("run", true), "[train] " + path("run/last.ckpt") +
                                        " belongs to another configuration: layers (784,20,10, was "
                                        "784,16,10), lr (0.25, was 0.2)");
  EXPECT_EQ(get_bytes(folder_ / "run/last.ckpt"), before);
}

TEST_F(TrainerErrors, DamagedCheckpoint_GoesOnFromThePrevious) {
  run("whole");
  run("run");
  const std::string good = get_bytes(folder_ / "run/last.ckpt");
  std::vector<std::string> lines;
  const FitCallbacks callbacks{.on_message = [&](const std::string& line) { lines.push_back(line); }};
  for (const std::string& damaged : {good.substr(0, good.size() / 2), std::string()}) {
    put_bytes(folder_ / "run/last.ckpt", damaged);
    const std::string problem = error_text([&] { read_checkpoint(folder_ / "run/last.ckpt"); });
    lines.clear();
    const TrainResult result = run("run", true, callbacks);
    const std::string announced =
        "Warning: " + problem + ": the run goes on from " + path("run/previous.ckpt");
    EXPECT_EQ(std::ranges::count(lines, announced), 1) << announced;
    EXPECT_EQ(result.warnings.front(), announced.substr(9));
    EXPECT_EQ(result.epochs.size(), 4u);
    expect_same_weights(folder_ / "run", folder_ / "whole");
    // The damaged file has not taken the place of the previous one.
    EXPECT_FALSE(read_checkpoint(folder_ / "run/previous.ckpt").tensors.empty());
  }
}

TEST_F(TrainerErrors, DamagedCheckpoint_IsRefused) {
  run("run");
  std::filesystem::remove(folder_ / "run/previous.ckpt");
  const std::string good = get_bytes(folder_ / "run/last.ckpt");
  put_bytes(folder_ / "run/last.ckpt", good.substr(0, good.size() / 2));
  EXPECT_NE(run_error("run", true).find("last.ckpt"), std::string::npos);
  std::string flipped = good;
  flipped[good.size() * 2 / 3] = static_cast<char>(flipped[good.size() * 2 / 3] ^ 4);
  put_bytes(folder_ / "run/last.ckpt", flipped);
  EXPECT_NE(run_error("run", true).find("last.ckpt"), std::string::npos);
  write_checkpoint(folder_ / "run/last.ckpt", {});
  EXPECT_EQ(run_error("run", true),
            "[train] " + path("run/last.ckpt") + ": not a checkpoint of a training run");
  put_bytes(folder_ / "run/last.ckpt", good);
  EXPECT_EQ(run("run", true).epochs.size(), 4u);
}

TEST_F(TrainerErrors, NonFiniteLoss_KeepsLastGoodCheckpoint) {
  options_.activation = Activation::relu;
  options_.schedule = ScheduleKind::step;  // the rate explodes after the second epoch
  options_.step_size = 2;
  options_.gamma = 1e35;
  const std::string text = run_error("run");
  EXPECT_EQ(text.substr(0, 31), "[train] the loss is not finite ");
  EXPECT_NE(text.find("of epoch 3: try a lower learning rate (the last good checkpoint is " +
                      path("run/last.ckpt") + ")"),
            std::string::npos)
      << text;
  const RunStatus status = parse_run_status(get_bytes(folder_ / "run/status.json")).value();
  EXPECT_EQ(status.state, RunState::failed);
  EXPECT_EQ(status.message, text);
  options_.epochs = 2;
  run("good");
  expect_same_weights(folder_ / "good", folder_ / "run");
  options_.learning_rate = 1e35;
  EXPECT_NE(run_error("bad").find("of epoch 1: try a lower learning rate (no checkpoint was saved before)"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad/best.safetensors"));
}

TEST_F(TrainerErrors, FullDisk_KeepsOldCheckpoint) {
  options_.schedule = ScheduleKind::constant;
  run("run");
  const std::string before = get_bytes(folder_ / "run/last.ckpt");
  options_.epochs = 6;
  std::string text;
  with_full_disk(4096, [&] { text = run_error("run", true); });
  EXPECT_NE(text.find("File too large"), std::string::npos) << text;
  EXPECT_EQ(get_bytes(folder_ / "run/last.ckpt"), before);
  run("run", true);
  run("whole");
  expect_same_weights(folder_ / "run", folder_ / "whole");
}

TEST_F(TrainerErrors, UnwritableLog_IsAnError) {
  const auto fill_disk = [&](const EpochRecord& record) {
    if (record.epoch != 1) return;
    std::filesystem::remove(folder_ / "run/log.csv");
    std::filesystem::create_symlink("/dev/full", folder_ / "run/log.csv");
  };
  EXPECT_EQ(error_text([&] { run("run", false, {.on_epoch = fill_disk}); }),
            "[train] cannot write " + path("run/log.csv") + ": No space left on device");
}

TEST_F(TrainerErrors, DataThatDoesNotFit_IsAnError) {
  options_.transform = Transform::parse("photo");
  EXPECT_EQ(
      run_error("run").substr(0, 108),
      "[train] expected a recipe for images of one size, such as digits or 'rotate -12 12, shift -2 2', got "
      "one for");
  options_.transform = Transform::parse("none");
  options_.layers = {100, 16, 10};
  EXPECT_EQ(run_error("run"),
            "[train] expected layers from 784 inputs (28x28 gray images) to 10 classes, got 100,16,10");
  options_.layers = {784, 16, 10};
  options_.limit = 301;
  EXPECT_EQ(run_error("run"),
            "[train] expected limit of at most 270 training images of data beside 30 for "
            "validation, got 301");
  options_.limit = 0;
  options_.validation = 300;
  EXPECT_EQ(run_error("run"), "[train] expected validation below the 300 training images of data, got 300");
  options_.data = "cifar";
  EXPECT_EQ(run_error("run"),
            "[train] expected one of " + datasets().list() +
                " or a folder with idx files or photographs, got 'cifar'; did you mean 'cifar10'?");
  options_.data = path("data");
  put_bytes(folder_ / "data/train-labels-idx1-ubyte",
            std::string("\0\0\x08\x01\0\0\x01\x2c", 8) + std::string(300, '\x0a'));
  EXPECT_EQ(run_error("run"), "[mnist] " + path("data/train-labels-idx1-ubyte") +
                                  ": expected labels from 0 to 9, got 10 for image 0");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace tandem
