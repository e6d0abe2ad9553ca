#include "tandem/data/loader/timeline.h"

#include "tandem/core/clock.h"
#include "tests/train/trace_reading.h"

namespace tandem {
namespace {

TEST(Timeline, Tracks_AreOrderedByKindAndBarsByTime) {
  Timeline timeline;
  const std::int64_t now = monotonic_ns();
  timeline.add({TrackKind::worker, 10}, "augment", now, now + 1000, {"positions", 0, 0, 512});
  timeline.add({TrackKind::worker, 2}, "augment", now + 9000, now + 9500, {"positions", 1, 512, 8});
  timeline.add({TrackKind::copies, 1}, "copy", now, now, {});
  timeline.add({TrackKind::trainer}, "evaluate", now, now + 2500, {});
  timeline.add({TrackKind::device, 1}, "steps", now, now, {});
  timeline.add({TrackKind::worker, 2}, "augment", now, now + 3000, {"positions", 1, 0, 512});
  const ReadTrace trace = parse_trace(timeline.to_text());
  EXPECT_EQ(trace.tracks,
            (std::vector<std::string>{"trainer", "cuda:1", "cuda:1 copies", "worker 2", "worker 10"}));
  expect_apart(trace);
  ASSERT_EQ(trace.bars.size(), 7u);
  EXPECT_NEAR(trace.bars[0].end_us - trace.bars[0].begin_us, 2.5, 1e-6);
  const ReadBar &before = trace.bars[3], &wait = trace.bars[4], &after = trace.bars[5];
  EXPECT_EQ(std::pair(before.epoch, before.last), (std::pair<std::int64_t, std::int64_t>(2, 512)));
  EXPECT_EQ(std::pair(after.first, after.last), (std::pair<std::int64_t, std::int64_t>(513, 520)));
  EXPECT_EQ(wait.name, "wait for a job");
  EXPECT_NEAR(wait.begin_us, before.end_us, 1e-3);
  EXPECT_NEAR(wait.end_us, after.begin_us, 1e-3);
  EXPECT_FALSE(timeline.stopped());
}

TEST(Timeline, Full_KeepsTheFirstBarsAndNotesIt) {
  Timeline timeline(3);
  const std::int64_t now = monotonic_ns();
  for (int i = 0; i < 3; ++i) timeline.add({TrackKind::trainer}, "steps", now + i, now + i, {});
  EXPECT_FALSE(timeline.stopped());
  timeline.add({TrackKind::trainer}, "too much", now, now, {});
  EXPECT_EQ(timeline.mark({}), nullptr);
  timeline.begin("too much", {}, {});
  timeline.end();
  EXPECT_EQ(timeline.size(), 3u);
  EXPECT_TRUE(timeline.stopped());
  const std::string text = timeline.to_text();
  EXPECT_EQ(text.find("too much"), std::string::npos);
  EXPECT_NE(text.find("only the first 3 bars are kept"), std::string::npos);
  const ReadTrace trace = parse_trace(text);
  EXPECT_EQ(trace.tracks, (std::vector<std::string>{"trace", "trainer"}));
  EXPECT_EQ(trace.bars.at(0).name, "stopped");
}

// On the CPU an event records the host's time, so marks must give it back.
TEST(Timeline, Marks_AreOnTheHostsClock) {
  Timeline timeline;
  for (int round = 0; round < 3; ++round) {
    const std::int64_t before = monotonic_ns();
    Timeline::Mark begin = timeline.mark({});
    const std::int64_t between = monotonic_ns();
    Timeline::Mark end = timeline.mark({});
    const std::int64_t after = monotonic_ns();
    timeline.add({TrackKind::device, 0}, "marked", std::move(begin), std::move(end), cpu_device, {});
    timeline.add({TrackKind::worker, round}, "begin", before, between, {});
    timeline.add({TrackKind::worker, round + 10}, "end", between, after, {});
    EXPECT_EQ(bars_named(parse_trace(timeline.to_text()), "cuda:0", "marked").size(),
              static_cast<std::size_t>(round));
    while (monotonic_ns() < after + 1'000'000) {  // so that a wrong sign would be visible
    }
    timeline.collect();
  }
  const ReadTrace trace = parse_trace(timeline.to_text());
  expect_apart(trace);
  const auto marked = bars_named(trace, "cuda:0", "marked"), begins = bars_named(trace, "worker", "begin"),
             ends = bars_named(trace, "worker", "end");
  ASSERT_EQ(marked.size(), 3u);
  constexpr double slack_us = 200;  // the host may be preempted while it reads its clock
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(marked[i].begin_us, begins[i].begin_us - slack_us);
    EXPECT_LE(marked[i].begin_us, begins[i].end_us + slack_us);
    EXPECT_GE(marked[i].end_us, ends[i].begin_us - slack_us);
    EXPECT_LE(marked[i].end_us, ends[i].end_us + slack_us);
  }
}

TEST(Timeline, End_WithoutBegin_DoesNothing) {
  Timeline timeline;
  timeline.end();
  EXPECT_EQ(timeline.size(), 0u);
  timeline.begin("steps", {"steps", 0, 4, 2}, {});
  timeline.end();
  timeline.end();
  const ReadTrace trace = parse_trace(timeline.to_text());
  ASSERT_EQ(trace.bars.size(), 1u);
  EXPECT_EQ(trace.bars[0].track, "trainer");
  EXPECT_EQ(std::pair(trace.bars[0].first, trace.bars[0].last),
            (std::pair<std::int64_t, std::int64_t>(5, 6)));
}

TEST(TimelineSpan, AddsABarOfTheTrainer) {
  Timeline timeline;
  { const TimelineSpan none(nullptr, "none", {}); }
  {
    const TimelineSpan span(&timeline, "wait for images", {"positions", 2, 0, 16});
    EXPECT_EQ(timeline.size(), 0u);
  }
  const ReadTrace trace = parse_trace(timeline.to_text());
  ASSERT_EQ(trace.bars.size(), 1u);
  EXPECT_EQ(trace.bars[0].name, "wait for images");
  EXPECT_EQ(trace.bars[0].epoch, 3);
}

}  // namespace
}  // namespace tandem
