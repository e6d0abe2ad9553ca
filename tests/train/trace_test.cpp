// The timeline of a run contains every step and every block of images once, in spans that do not overlap.
#include <csignal>

#include "tandem/train/trainer.h"
#include "tests/core/error_text.h"
#include "tests/train/small_run.h"
#include "tests/train/trace_reading.h"

namespace tandem {
namespace {

constexpr std::int64_t images = 1200, batch = 16, steps = 75, epochs = 2;  // three blocks of the loader

class RunTrace : public testing::Test {
 protected:
  RunTrace() {
    const ImageSet digits = make_digits(images + 50, 7);
    write_split(folder_ / "data", digits.slice(0, images), digits.slice(images, images + 50));
    options_.data = (folder_ / "data").string();
    options_.layers = {784, 16, 10};
    options_.epochs = epochs;
    options_.validation = 0;
    options_.batch_size = batch;
    options_.learning_rate = 0.5;
    options_.transform = Transform::parse("digits");
    options_.workers = 2;
    options_.device = cpu_device;
  }

  TrainResult run(const std::string& name, const FitCallbacks& callbacks = {}, bool resume = false) {
    options_.run_folder = folder_ / "run";
    options_.resume = resume;
    options_.trace = folder_ / name;
    return train(options_, callbacks);
  }

  TempFolder folder_;
  TrainOptions options_;
};

TEST_F(RunTrace, Run_HasEveryStepAndBlockOnce) {
  std::vector<std::string> messages;
  run("trace.json", {.on_message = [&](const std::string& line) { messages.push_back(line); }});
  const ReadTrace trace = read_trace(folder_ / "trace.json");
  ASSERT_GE(trace.tracks.size(), 2u);
  EXPECT_EQ(trace.tracks[0], "trainer");
  for (std::size_t i = 1; i < trace.tracks.size(); ++i)
    EXPECT_TRUE(trace.tracks[i] == "worker 0" || trace.tracks[i] == "worker 1") << trace.tracks[i];
  expect_apart(trace);
  expect_covered(bars_named(trace, "trainer", "steps"), epochs, steps);
  expect_covered(bars_named(trace, "worker", "augment"), epochs, images);
  EXPECT_EQ(bars_named(trace, "worker", "augment").size(), 6u);
  EXPECT_EQ(bars_named(trace, "trainer", "evaluate").size(), 2u);
  EXPECT_EQ(bars_named(trace, "trainer", "save checkpoint").size(), 2u);
  EXPECT_GE(bars_named(trace, "trainer", "save best model").size(), 1u);
  // The trainer waits for a block until it is filled, and uses it after that.
  for (const ReadBar& filled : bars_named(trace, "worker", "augment")) {
    for (const ReadBar& used : bars_named(trace, "trainer", "steps"))
      if (used.epoch == filled.epoch && (used.first - 1) * batch + 1 == filled.first) {
        EXPECT_GE(used.begin_us, filled.end_us);
      }
    for (const ReadBar& wait : bars_named(trace, "trainer", "wait for images"))
      if (wait.epoch == filled.epoch && wait.first == filled.first) {
        EXPECT_GE(wait.end_us, filled.end_us);
      }
  }
  EXPECT_TRUE(messages.back().starts_with("Trace: " + (folder_ / "trace.json").string())) << messages.back();
}

TEST_F(RunTrace, Timeline_IsInTheFolderAndInTheReport) {
  run("trace.json");
  const nlohmann::json view = nlohmann::json::parse(get_bytes(folder_ / "run/timeline.json"));
  EXPECT_EQ(view.at("complete"), true);
  const ReadTrace trace = read_trace(folder_ / "trace.json");
  ASSERT_EQ(view.at("lanes").size(), trace.tracks.size());
  const nlohmann::json& trainer = view.at("lanes")[0];
  EXPECT_EQ(trainer.at("name"), "trainer");
  const auto spans_named = [&](const std::string& name) {
    return std::ranges::count_if(trainer.at("spans"), [&](const nlohmann::json& span) {
      return trainer.at("names")[span[0].get<std::size_t>()] == name;
    });
  };
  for (const char* const name : {"steps", "evaluate", "save checkpoint"})
    EXPECT_EQ(spans_named(name), std::ssize(bars_named(trace, "trainer", name))) << name;
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("\"timeline\":{\"lanes\":[{\"name\":\"trainer\""),
            std::string::npos);
}

TEST_F(RunTrace, NoWorkers_TrainerAugments) {
  options_.workers = 0;
  run("trace.json");
  const ReadTrace trace = read_trace(folder_ / "trace.json");
  EXPECT_EQ(trace.tracks, std::vector<std::string>{"trainer"});
  expect_apart(trace);
  expect_covered(bars_named(trace, "trainer", "steps"), epochs, steps);
  expect_covered(bars_named(trace, "trainer", "augment"), epochs, images);
}

TEST_F(RunTrace, StoppedBySignal_IsWritten) {
  const auto stop = [polls = 0]() mutable { return ++polls == 3 ? SIGTERM : 0; };
  ASSERT_EQ(run("stopped.json", {.stop_signal = stop}).stopped_by, SIGTERM);
  ReadTrace trace = read_trace(folder_ / "stopped.json");
  expect_apart(trace);
  std::vector<ReadBar> all = bars_named(trace, "trainer", "steps");
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(bars_named(trace, "trainer", "evaluate").size(), 0u);
  EXPECT_EQ(bars_named(trace, "trainer", "save checkpoint").size(), 1u);
  options_ = read_config(RunFolder{folder_ / "run"}.config());
  run("resumed.json", {}, true);
  trace = read_trace(folder_ / "resumed.json");
  expect_apart(trace);
  for (const ReadBar& bar : bars_named(trace, "trainer", "steps")) all.push_back(bar);
  expect_covered(all, epochs, steps);
}

TEST_F(RunTrace, Tracing_DoesNotChangeBits) {
  options_.run_folder = folder_ / "plain";
  train(options_);
  run("trace.json");
  expect_same_weights(folder_ / "plain", folder_ / "run");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "plain"))
    EXPECT_NE(entry.path().filename(), "trace.json");
}

TEST_F(RunTrace, MissingFolder_FailsAtStartUnlessItIsTheRunFolder) {
  EXPECT_EQ(error_text([&] { run("none/trace.json"); }),
            "[train] cannot write " + (folder_ / "none/trace.json").string() + ": No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  options_.epochs = 1;
  run("run/trace.json");
  expect_covered(bars_named(read_trace(folder_ / "run/trace.json"), "trainer", "steps"), 1, steps);
}

// Augmented on the GPU, on the CPU, or not at all.
class RunTraceCuda : public RunTrace, public testing::WithParamInterface<std::string> {};

TEST_P(RunTraceCuda, GpuSpans_AreOnTheSameClock) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  options_.device = cuda_device();
  if (GetParam() == "none")
    options_.transform = {};
  else
    options_.augment_on = GetParam() == "gpu" ? AugmentPlace::gpu : AugmentPlace::cpu;
  run("trace.json");
  const ReadTrace trace = read_trace(folder_ / "trace.json");
  expect_apart(trace);
  expect_covered(bars_named(trace, "trainer", "steps"), epochs, steps);
  expect_covered(bars_named(trace, "cuda:0", "steps"), epochs, steps);
  EXPECT_EQ(bars_named(trace, "cuda:0", "evaluate").size(), 2u);
  if (GetParam() == "cpu") {
    expect_covered(bars_named(trace, "cuda:0 copies", "copy"), epochs, images);
    expect_covered(bars_named(trace, "worker", "augment"), epochs, images);
    EXPECT_FALSE(bars_named(trace, "cuda:0", "wait for images").empty());
  } else {
    expect_covered(bars_named(trace, "cuda:0", GetParam() == "gpu" ? "augment" : "order images"), epochs,
                   images);
  }
  // One clock: GPU spans lie within the time of the trainer's.
  double begin = 1e300, end = 0;
  for (const ReadBar& bar : trace.bars) {
    if (bar.track != "trainer") continue;
    begin = std::min(begin, bar.begin_us);
    end = std::max(end, bar.end_us);
  }
  constexpr double slack_us = 1e5;  // the GPU's first work precedes the trainer's first span
  for (const ReadBar& bar : trace.bars) {
    if (!bar.track.starts_with("cuda")) continue;
    EXPECT_GE(bar.begin_us, begin - slack_us) << bar.track << ' ' << bar.name;
    EXPECT_LE(bar.end_us, end + slack_us) << bar.track << ' ' << bar.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Augmented, RunTraceCuda, testing::Values("gpu", "cpu", "none"),
                         [](const auto& where) { return where.param; });

}  // namespace
}  // namespace tandem
