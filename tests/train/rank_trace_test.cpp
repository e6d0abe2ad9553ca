// The timelines of all ranks in one trace. Ranks are threads of the test here.
#include "tandem/train/rank_trace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "tandem/core/clock.h"
#include "tandem/train/trainer.h"
#include "tests/dist/rank_threads.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"
#include "tests/train/trace_reading.h"

namespace tandem {
namespace {

// The ranks' hosts: 0 and 1 on n0, 2 and 3 on n1.
TEST(ClockOffset, OtherClocks_LieWithinTheBounds) {
  constexpr std::int64_t ahead_ns = 5'000'000'000;
  std::vector<ClockOffset> offsets(4);
  const auto errors = on_ranks(4, over_shared_memory(), [&](Group& group) {
    const int rank = group.place().rank;
    const auto clock = [&] { return monotonic_ns() + (rank >= 2 ? ahead_ns : 0); };
    offsets[static_cast<std::size_t>(rank)] = measure_clock_offset(group, clock);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const std::size_t rank : {0u, 1u}) {  // the clock of rank 0
    EXPECT_EQ(offsets[rank].ns, 0);
    EXPECT_EQ(offsets[rank].error_ns, 0);
  }
  for (const std::size_t rank : {2u, 3u}) {
    EXPECT_GT(offsets[rank].error_ns, 0);
    EXPECT_LT(offsets[rank].error_ns, ahead_ns);
    EXPECT_LE(std::abs(offsets[rank].ns + ahead_ns), offsets[rank].error_ns);
  }
}

TEST(GatherTrace, Ranks_AreProcessesOnOneClock) {
  constexpr std::int64_t ahead_ns = 3'000'000;
  RankTrace trace;
  const std::int64_t now = monotonic_ns();
  const auto errors = on_ranks(3, over_shared_memory(), [&](Group& group) {
    const int rank = group.place().rank;
    const ClockOffset offset{.ns = rank == 2 ? -ahead_ns : 0, .error_ns = rank == 2 ? 7000 : 0};
    Timeline timeline(rank == 1 ? 1 : 10);
    const std::int64_t begin = now + 1'000'000'000 - offset.ns;  // the same moment on all clocks
    timeline.add({TrackKind::exchange}, "sum gradients", begin, begin + 2000, {});
    if (rank == 1) timeline.add({TrackKind::trainer}, "too much", begin, begin, {});
    const RankTrace mine = gather_trace(group, timeline, offset);
    EXPECT_EQ(mine.bars, 3u);
    EXPECT_TRUE(mine.stopped);
    EXPECT_EQ(mine.text.empty(), rank != 0);
    if (rank == 0) trace = mine;
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_NE(trace.text.find("clock ± 7 µs"), std::string::npos) << trace.text;
  const ReadTrace read = parse_trace(trace.text);
  EXPECT_EQ(read.processes,
            (std::map<int, std::string>{{0, "rank 0 on n0"}, {1, "rank 1 on n0"}, {2, "rank 2 on n1"}}));
  const std::vector<ReadBar> bars = bars_named(read, "exchange", "sum gradients");
  ASSERT_EQ(bars.size(), 3u);
  for (const ReadBar& bar : bars) {
    EXPECT_NEAR(bar.begin_us, bars[0].begin_us, 1e-3);
    EXPECT_NEAR(bar.end_us - bar.begin_us, 2, 1e-3);
  }
}

// Trains photographs on two ranks, so that batch norms exchange too.
class RanksTrace : public testing::Test {
 protected:
  RanksTrace() {
    write_photos(folder_ / "data", 14);
    options_.data = (folder_ / "data").string();
    options_.model = "resnet18";
    options_.image_size = 32;
    options_.batch_size = 10;
    options_.epochs = 1;
    options_.shards = 2;
    options_.device = cpu_device;
    options_.workers = 0;
    options_.run_folder = folder_ / "run";
    options_.trace = folder_ / "trace.json";
  }

  // Returns the microseconds it took.
  double train_on_two(const FitCallbacks& callbacks) {
    const Stopwatch watch;
    const auto errors =
        on_ranks(2, over_shared_memory(), [&](Group& group) { train(options_, group, callbacks); });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    return 1e3 * watch.elapsed_ms();
  }
  std::size_t count(const ReadTrace& trace, int rank, const std::string& track, const std::string& name) {
    return static_cast<std::size_t>(std::ranges::count_if(
        bars_named(trace, track, name), [&](const ReadBar& bar) { return bar.process == rank; }));
  }

  TempFolder folder_;
  TrainOptions options_;
};

TEST_F(RanksTrace, Run_HasEveryRankAndItsExchange) {
  std::string last;
  const double run_us = train_on_two({.on_message = [&](const std::string& line) { last = line; }});
  const ReadTrace trace = read_trace(options_.trace);
  EXPECT_EQ(trace.processes, (std::map<int, std::string>{{0, "rank 0 on n0"}, {1, "rank 1 on n0"}}));
  expect_apart(trace);
  for (const int rank : {0, 1}) {
    for (const char* const name : {"load data", "steps", "evaluate"})
      EXPECT_GE(count(trace, rank, "trainer", name), 1u) << rank << name;
    for (const char* const name :
         {"sum gradients", "gather batch norms", "sum losses", "agree", "gather outputs"})
      EXPECT_GE(count(trace, rank, "exchange", name), 1u) << rank << name;
    EXPECT_EQ(count(trace, rank, "trainer", "save checkpoint"), rank == 0 ? 1u : 0u);
  }
  for (const ReadBar& bar : trace.bars) {
    EXPECT_GE(bar.begin_us, 0);
    EXPECT_LE(bar.end_us, run_us);
  }
  EXPECT_TRUE(last.starts_with("Trace: " + options_.trace.string())) << last;
  EXPECT_NE(last.find(" spans of 2 ranks"), std::string::npos) << last;
}

TEST_F(RanksTrace, StoppedBySignal_IsWritten) {
  options_.epochs = 1000;
  std::atomic<int> polls = 0;
  train_on_two({.stop_signal = [&] { return ++polls == 3 ? SIGTERM : 0; }});
  const ReadTrace trace = read_trace(options_.trace);
  expect_apart(trace);
  for (const int rank : {0, 1}) {
    EXPECT_GE(count(trace, rank, "trainer", "steps"), 1u);
    EXPECT_GE(count(trace, rank, "exchange", "sum gradients"), 1u);
  }
}

TEST_F(RanksTrace, TraceOnOneRankOnly_IsRefused) {
  const auto errors = on_ranks(2, over_shared_memory(), [&](Group& group) {
    TrainOptions options = options_;
    if (group.place().rank == 1) options.trace.clear();
    train(options, group);
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("trace"), std::string::npos) << error;
}

}  // namespace
}  // namespace tandem
