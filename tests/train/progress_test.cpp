#include "tandem/train/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

const ProgressState sample{.epoch = 3,
                           .epochs = 15,
                           .position = 37200,
                           .total = 60000,
                           .samples_per_second = 26120,
                           .loss = 0.08321};

TEST(ProgressText, Bar_WideTerminal_ShowsEverything) {
  EXPECT_EQ(progress_bar_text(sample, {.width = 100}),
            "Epoch 3/15 ━━━━━━━━━━━━━━━━━━━━━━━━────────────────  62 %  26.1k/s  loss 0.0832  0:29 left");
}

TEST(ProgressText, BarNeverExceedsItsWidth) {
  for (int width = 0; width < 140; ++width) {
    const std::string text = progress_bar_text(sample, {.width = width});
    EXPECT_LE(display_width(text), width) << text;
    EXPECT_TRUE(width < 60 || text.find("left") != std::string::npos) << text;
    EXPECT_TRUE(width < 8 || text.substr(0, 7) == "Epoch 3") << text;
  }
}

TEST(ProgressText, BarIsEmptyAtTheStartAndFullAtTheEnd) {
  ProgressState state = sample;
  state.position = 0;
  EXPECT_EQ(progress_bar_text(state, {.width = 100}).find("━"), std::string::npos);
  state.position = state.total;
  EXPECT_EQ(progress_bar_text(state, {.width = 100}).find("─"), std::string::npos);
  EXPECT_NE(progress_bar_text(state, {.width = 100}).find("100 %"), std::string::npos);
  state.position = state.total - 1;  // not finished is not 100 %
  EXPECT_NE(progress_bar_text(state, {.width = 100}).find(" 99 %"), std::string::npos);
  state.position = 2 * state.total;
  EXPECT_NE(progress_bar_text(state, {.width = 100}).find("100 %"), std::string::npos);
}

TEST(ProgressText, UnknownFigures_AreOmitted) {
  const ProgressState state{.epoch = 1, .epochs = 2, .position = 0, .total = 0};
  EXPECT_EQ(progress_bar_text(state, {.width = 30}), "Epoch 1/2 ──────────────   0 %");
  EXPECT_EQ(progress_line_text(state), "Epoch 1/2: 0 of 0 samples (0 %).");
  ProgressState stuck = sample;
  stuck.samples_per_second = 1e-9;
  stuck.loss = std::nan("");
  EXPECT_EQ(progress_bar_text(stuck, {.width = 100}).find("left"), std::string::npos);
  EXPECT_EQ(progress_bar_text(stuck, {.width = 100}).find("loss"), std::string::npos);
}

TEST(ProgressText, Phase_ReplacesTheEpoch) {
  const ProgressState state{.phase = "Validation", .position = 64, .total = 256};
  EXPECT_EQ(progress_bar_text(state, {.width = 30}), "Validation ━━━──────────  25 %");
  EXPECT_EQ(progress_line_text(state), "Validation: 64 of 256 samples (25 %).");
}

TEST(ProgressText, Color_OnlyIfEnabled) {
  EXPECT_EQ(progress_bar_text(sample, {.width = 100}).find('\x1b'), std::string::npos);
  EXPECT_NE(progress_bar_text(sample, {.width = 100, .color = true}).find("\x1b[32m━"), std::string::npos);
}

TEST(ProgressText, Line_HasAllFigures) {
  EXPECT_EQ(progress_line_text(sample),
            "Epoch 3/15: 37,200 of 60,000 samples (62 %), 26.1k samples/s, loss 0.0832, 0:29 left.");
  ProgressState slow = sample;
  slow.samples_per_second = 5;
  EXPECT_NE(progress_line_text(slow).find(", 5 samples/s, loss 0.0832, 41:16:00 left."), std::string::npos);
  slow.samples_per_second = 2.5e6;
  EXPECT_NE(progress_line_text(slow).find("2.50M samples/s"), std::string::npos);
}

TEST(ProgressText, TimeLeftCoversAllEpochs) {
  EXPECT_DOUBLE_EQ(
      seconds_left({.epoch = 2, .epochs = 4, .position = 25, .total = 100, .samples_per_second = 5}), 55);
  EXPECT_TRUE(std::isnan(seconds_left({.epoch = 1, .epochs = 4, .position = 25, .total = 100})));
}

struct Recorder {
  std::vector<std::string> writes;
  int columns = 80;

  ProgressOutput output(bool terminal) {
    return {.terminal = terminal,
            .color = false,
            .width = [this] { return columns; },
            .write = [this](std::string_view text) { writes.emplace_back(text); }};
  }
};

TEST(Progress, Bar_IsRedrawnAtMostTenTimesPerSecond) {
  Recorder recorder;
  Progress progress(recorder.output(true));
  for (int ms = 0; ms < 1000; ++ms) progress.update(sample, 5 + ms / 1000.0);
  EXPECT_GE(recorder.writes.size(), 9u);
  EXPECT_LE(recorder.writes.size(), 10u);
  for (const std::string& text : recorder.writes) {
    EXPECT_EQ(text.substr(0, 4), "\r\x1b[K");
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Progress, Bar_FollowsWindowWidth) {
  Recorder recorder;
  Progress progress(recorder.output(true));
  for (const int columns : {120, 70, 40, 10, 1}) {
    recorder.columns = columns;
    progress.update(sample, 1000.0 - columns);
    EXPECT_LE(display_width(recorder.writes.back().substr(4)), columns - 1);
  }
  EXPECT_EQ(recorder.writes.size(), 5u);
}

TEST(Progress, Bar_IsErasedAtTheEnd) {
  Recorder recorder;
  {
    Progress progress(recorder.output(true));
    progress.update(sample, 0);
    progress.clear();
    ASSERT_EQ(recorder.writes.size(), 2u);
    EXPECT_EQ(recorder.writes[1], "\r\x1b[K");
    progress.clear();  // nothing to erase
    EXPECT_EQ(recorder.writes.size(), 2u);
    progress.update(sample, 1);
  }
  ASSERT_EQ(recorder.writes.size(), 4u);
  EXPECT_EQ(recorder.writes[3], "\r\x1b[K");
}

TEST(Progress, Log_GetsALineEveryTenSeconds) {
  Recorder recorder;
  {
    Progress progress(recorder.output(false));
    for (int s = 0; s <= 35; ++s) progress.update(sample, 100 + s);
  }
  EXPECT_EQ(recorder.writes, (std::vector<std::string>(3, progress_line_text(sample) + "\n")));
}

TEST(Progress, Unused_WritesNothing) {
  Recorder recorder;
  { Progress progress(recorder.output(true)); }
  { Progress progress(recorder.output(false)); }
  EXPECT_TRUE(recorder.writes.empty());
}

TEST(Progress, Stderr_NoTerminal_NoColor) {
  const ProgressOutput output = stderr_progress();
  EXPECT_GT(output.width(), 0);
  EXPECT_TRUE(output.terminal || !output.color);
}

}  // namespace
}  // namespace tandem
