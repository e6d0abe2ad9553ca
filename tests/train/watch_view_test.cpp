// The view of tandem watch. The stored screens in tests/golden/watch are written anew by
//   TANDEM_WRITE_SCREENS=1 build/cpu/tests/train_test --gtest_filter='WatchView.*Stored*'
// and are to be looked at before they are committed.
#include "tandem/train/watch/watch_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tandem/text/utf8.h"
#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

// 15 epochs of 100 steps, of which those up to `step` are done.
WatchedRun make_run(const std::string& name, int step = 1040) {
  WatchedRun run;
  run.name = name;
  run.phase = RunPhase::running;
  run.changed_at = 1000;
  run.data = "digits";
  run.model = "mlp";
  run.batch_size = "16";
  run.status = {
      .device = "cpu",
      .engine = "perceptron on the CPU, 2 threads",
      .epochs = 15,
      .steps_per_epoch = 100,
      .samples_per_epoch = 1600,
      .warnings = {"only 30 validation images: an accuracy of 50 % could be anything from 33 to 67 %"}};
  for (int i = 10; i <= step; i += 10) {
    const double loss = 2.3 * std::exp(-i / 400.0) + 0.1 + 0.03 * ((i * 7919) % 13 - 6) / 6.0;
    run.last_step = {.step = i,
                     .epoch = (i - 1) / 100 + 1,
                     .loss = loss,
                     .learning_rate = 0.5 * (1 - i / 1500.0),
                     .samples_per_second = 26'000.0 + 100 * ((i * 31) % 17),
                     .waited_share = 0.034,
                     .cpu_cores = 1.84,
                     .memory_mb = 512.25,
                     .device_memory_mb = not_measured};
    run.steps.add(run.last_step);
  }
  for (int epoch = 1; epoch <= step / 100; ++epoch) {
    EpochRecord record{
        .epoch = epoch,
        .train_loss = 2.3 * std::exp(-epoch / 4.0) + 0.1,
        .train_accuracy = 1 - 0.9 * std::exp(-epoch / 3.0),
        .val_loss = 2.2 * std::exp(-epoch / 4.0) + 0.15 + (epoch > 7 ? 0.02 * (epoch - 7) : 0),
        .val_accuracy = 0.97 - 0.8 * std::exp(-epoch / 2.5) - (epoch > 7 ? 0.02 * (epoch - 7) : 0),
        .seconds = 0.5,
        .samples_per_second = 26'100,
        .waited_seconds = 0.01};
    run.train_loss.add(epoch, record.train_loss);
    run.val_loss.add(epoch, record.val_loss);
    run.train_accuracy.add(epoch, record.train_accuracy);
    run.val_accuracy.add(epoch, record.val_accuracy);
    run.epochs_done = epoch;
    run.last_epoch = record;
    if (record.val_accuracy > run.best_epoch.val_accuracy || run.best_epoch.epoch == 0)
      run.best_epoch = record;
  }
  return run;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

WatchView view_of(int width, int height) {
  return {.width = width, .height = height, .style = {.color = false}, .now = 1001};
}

std::string frame(const WatchedRun& run, const WatchView& view) {
  const std::vector<const WatchedRun*> runs{&run};
  return join(watch_frame(runs, view));
}

void expect_stored(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(source_folder) / "tests/golden/watch" / (name + ".txt");
  if (std::getenv("TANDEM_WRITE_SCREENS") != nullptr) put_bytes(path, text);
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(text, get_bytes(path)) << name;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WatchView, OneRun_IsAsStored) {
  const WatchedRun run = make_run("runs/digits-mlp-1");
  expect_stored("80x24", frame(run, view_of(80, 24)));
  expect_stored("200x60", frame(run, view_of(200, 60)));
  expect_stored("40x14", frame(run, view_of(40, 14)));
}

TEST(WatchView, AsciiColorAndOtherKeys_AreAsStored) {
  const WatchedRun run = make_run("runs/digits-mlp-1");
  WatchView view = view_of(80, 24);
  view.style.utf8 = false;
  const std::string ascii = frame(run, view);
  for (const char c : ascii) ASSERT_TRUE(static_cast<unsigned char>(c) < 0x80);
  expect_stored("80x24-ascii", ascii);
  view.style = {};
  expect_stored("80x24-color", frame(run, view));
  view.style.color = false;
  view.by_epoch = view.log_axis = true;
  view.zoom = 1;
  expect_stored("80x24-epochs-log-zoom", frame(run, view));
  view.help = true;
  expect_stored("80x24-help", frame(run, view));
}

TEST(WatchView, SeveralRuns_AreAListAsStored) {
  std::vector<WatchedRun> runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(make_run("runs/digits-mlp-" + std::to_string(i), 150 * i));
  runs[1].phase = RunPhase::finished;
  runs[2].phase = RunPhase::failed;
  runs[2].status.message = "[train] the loss is not finite at step 450 of epoch 5: try a lower learning rate";
  runs[3].name = "a/very/long/path/to/a/folder/with/runs/digits-resnet18-with-a-long-name-4";
  std::vector<const WatchedRun*> all;
  for (const WatchedRun& run : runs) all.push_back(&run);
  WatchView view = view_of(100, 32);
  view.selected = 2;
  expect_stored("100x32-list", join(watch_frame(all, view)));
  view = view_of(80, 24);
  view.selected = 8;
  const std::string last = join(watch_frame(all, view));
  EXPECT_TRUE(contains(last, "run (4-9 of 9)")) << last;
  EXPECT_TRUE(contains(last, "▸ runs/digits-mlp-9")) << last;
  view.selected = 99;
  EXPECT_EQ(join(watch_frame(all, view)), last);
}

TEST(WatchView, OverlaidRuns_AreOnePlotAsStored) {
  std::vector<WatchedRun> runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(make_run("runs/digits-mlp-" + std::to_string(i), 150 * i));
  std::vector<const WatchedRun*> all;
  for (const WatchedRun& run : runs) all.push_back(&run);
  WatchView view = view_of(80, 24);
  view.overlay = true;
  view.selected = 4;
  expect_stored("80x24-overlay", join(watch_frame(all, view)));
  view.style = {.color = false, .utf8 = false};
  expect_stored("80x24-overlay-ascii", join(watch_frame(all, view)));
  view = {.width = 200, .height = 60, .selected = 0, .by_epoch = true, .overlay = true, .now = 1001};
  expect_stored("200x60-overlay-color", join(watch_frame(all, view)));
}

TEST(WatchView, Machine_IsALineOfItsOwn) {
  WatchedRun run = make_run("runs/digits-mlp-1");
  EXPECT_TRUE(contains(frame(run, view_of(80, 24)), "\nCPU 1.8 cores  memory 512 MB\n"));
  run.last_step.gpu_share = 0.87;
  run.last_step.device_memory_mb = 2000;
  run.last_step.gpu_memory_mb = 12'500;
  EXPECT_TRUE(
      contains(frame(run, view_of(100, 30)),
               "\nCPU 1.8 cores  memory 512 MB  GPU 87 %  GPU memory 2000 MB  of all processes 12.5 GB\n"));
  run.last_step = {.step = 1040, .loss = 0.5};
  EXPECT_FALSE(contains(frame(run, view_of(80, 24)), "CPU 1.8 cores"));
}

TEST(WatchView, OverlayOfOneRun_IsThatRun) {
  const WatchedRun run = make_run("runs/digits-mlp-1");
  WatchView view = view_of(80, 24);
  const std::string alone = frame(run, view);
  view.overlay = true;
  EXPECT_EQ(frame(run, view), alone);
}

TEST(WatchView, OverlayOfRunsWithoutStepsOrEpochs_IsShown) {
  WatchedRun empty, pretraining;
  empty.name = "empty";
  pretraining.name = "pretraining";
  pretraining.total_steps = 100;
  for (int i = 1; i <= 50; ++i) {
    pretraining.last_step = {.step = i, .loss = 1.0 / i};
    pretraining.steps.add(pretraining.last_step);
  }
  WatchView view = view_of(80, 24);
  view.overlay = true;
  const WatchedRun run = make_run("runs/digits-mlp-1");
  const std::vector<const WatchedRun*> steps{&pretraining, &run}, none{&empty, &empty};
  EXPECT_TRUE(contains(join(watch_frame(steps, view)), "Training loss"));
  EXPECT_TRUE(contains(join(watch_frame(none, view)), "nothing measured yet"));
}

// Whatever the size: as many lines as rows, and none too wide.
TEST(WatchView, AnySize_IsNeverExceeded) {
  WatchedRun run = make_run("runs/日本-mlp-1");
  run.status.warnings = {std::string(500, 'w'), "two words"};
  run.phase = RunPhase::failed;
  run.status.message = "failed because of something";
  const WatchedRun other = make_run("b", 30);
  const std::vector<const WatchedRun*> runs{&run, &other};
  for (int width = 1; width <= 130; width = width < 40 ? width + 1 : width + 9)
    for (int height = 1; height <= 70; height = height < 30 ? height + 1 : height + 9)
      for (const bool utf8 : {true, false})
        for (std::size_t selected = 0; selected < 2; ++selected) {
          WatchView view = view_of(width, height);
          view.style.utf8 = utf8;
          view.selected = selected;
          view.help = width % 3 == 0;
          view.by_epoch = width % 2 == 0;
          view.overlay = (width + height) % 5 < 2;
          view.zoom = height % (max_zoom + 1);
          const auto lines = watch_frame(runs, view);
          ASSERT_EQ(lines.size(), static_cast<std::size_t>(height));
          for (const std::string& line : lines)
            ASSERT_LE(display_width(line), width) << width << "x" << height << ": " << line;
        }
  EXPECT_EQ(watch_frame(runs, view_of(0, -3)).size(), 1U);
  EXPECT_EQ(watch_frame({}, view_of(80, 24)).size(), 24U);
}

TEST(WatchView, RunWithoutFigures_IsShown) {
  WatchedRun run;
  run.name = "runs/new";
  const std::string text = frame(run, view_of(80, 24));
  EXPECT_TRUE(contains(text, "runs/new  starting")) << text;
  EXPECT_TRUE(contains(text, "nothing measured yet")) << text;
  EXPECT_TRUE(contains(text, "no epoch is finished yet")) << text;
  EXPECT_FALSE(contains(text, "nan")) << text;
}

TEST(WatchView, FiguresThatAreNotFinite_AreDashes) {
  WatchedRun run = make_run("r");
  run.last_epoch.val_loss = run.last_step.loss = not_measured;
  run.best_epoch.val_accuracy = run.last_epoch.val_accuracy = not_measured;
  for (const int width : {25, 80}) {
    const std::string text = frame(run, view_of(width, 24));
    EXPECT_FALSE(contains(text, "nan") || contains(text, "inf")) << text;
    EXPECT_TRUE(contains(text, "–")) << text;
  }
}

TEST(WatchView, ConstantCurve_IsDrawn) {
  WatchedRun run;
  run.name = "r";
  run.status.epochs = 2;
  for (int i = 1; i <= 5; ++i) {
    run.last_step = {.step = i, .loss = 0};
    run.steps.add(run.last_step);
  }
  WatchView view = view_of(80, 24);
  EXPECT_TRUE(contains(frame(run, view), "train")) << frame(run, view);
  view.log_axis = true;  // 0 is not on a logarithmic axis
  EXPECT_TRUE(contains(frame(run, view), "⠉") || contains(frame(run, view), "⣀") ||
              contains(frame(run, view), "⠤") || contains(frame(run, view), "⠒"))
      << frame(run, view);
}

TEST(WatchView, Silence_IsTold) {
  const WatchedRun run = make_run("r");
  WatchView view = view_of(80, 24);
  EXPECT_FALSE(contains(frame(run, view), "nothing new"));
  view.now = 1000 + 125;
  EXPECT_TRUE(contains(frame(run, view), "nothing new for 2 min 05 s")) << frame(run, view);
}

TEST(WatchView, Warnings_AreTheLastOnes) {
  WatchedRun run = make_run("r");
  run.status.warnings = {"one", "two", "three", "four", "five"};
  run.unreadable_rows = 2;
  const std::string text = frame(run, view_of(80, 24));
  EXPECT_FALSE(contains(text, "three")) << text;
  EXPECT_TRUE(contains(text, "Warning: four\nWarning: five\n2 rows of the logs cannot be read")) << text;
}

TEST(WatchView, Lines_SayTheFigures) {
  WatchedRun run = make_run("r");
  EpochRecord record = run.best_epoch;
  record.metrics = {{"precision", 0.5}};
  EXPECT_EQ(
      watch_epoch_line(run, record),
      "epoch 7/15: train loss 0.4997, validation loss 0.5323, validation accuracy 92.14 %, precision 0.500, "
      "26,100 images/s");
  run.phase = RunPhase::finished;
  EXPECT_EQ(watch_end_line(run), "finished: best validation accuracy 92.14 % in epoch 7");
  run.status.test_accuracy = 0.9;
  run.status.tested_on = "test";
  EXPECT_EQ(watch_end_line(run),
            "finished: best validation accuracy 92.14 % in epoch 7, test accuracy 90.00 %");
  WatchedRun failed;
  failed.phase = RunPhase::failed;
  failed.status.message = "no luck";
  EXPECT_EQ(watch_end_line(failed), "failed: no luck");
}

}  // namespace
}  // namespace tandem
