// Groups of processes: what the others see when one is killed, stopped, fails or exits.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tandem/dist/launch.h"
#include "tandem/dist/transport_group.h"
#include "tandem/process/child_process.h"
#include "tests/core/error_text.h"
#include "tests/dist/shard_sums.h"
#include "tests/dist/test_program.h"

namespace tandem {

// A rank that sums until something happens: "rank", its way to end ("sum", "stop", "fail", "exit", "return").
int run_rank(const std::vector<std::string>& words) {
  try {
    const LaunchedRank launched = detect_launch(process_environment());
    const auto segment = std::make_shared<LocalSegment>(Descriptor(launched.segment_fd));
    const auto group = local_group(launched.place, segment, {.limit_s = words[1] == "stop" ? 2.0 : 10.0});
    const Place& place = group->place();
    Partials mine{.shards = place.size};
    mine.sums.push_back(Tensor::from(shard_values(place.rank, 300'000), {300'000}));
    const Tensor out = Tensor::empty({300'000}, DType::f32);
    const Floats expected = node_sum({0, place.size}, 300'000);
    for (int round = 0;; ++round) {
      group->reduce(mine, out).wait();
      if (!same_bits(out.to_vector<float>(), expected)) return 9;
      group->barrier();
      if (round > 0) continue;
      if (place.rank == 0) std::fputs("ready\n", stderr);
      if (words[1] == "return") return 0;
      if (words[1] == "fail" && place.rank == 2) {
        group->fail("cannot read 7.jpg");
        return 3;
      }
      if (words[1] == "exit" && place.rank == 2) std::_Exit(4);
    }
  } catch (const LostRank& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 75;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

namespace {

class RankProcesses : public testing::Test {
 protected:
  void start(int ranks, const std::string& way) {
    const LocalSegment segment(ranks);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    output_ = Descriptor(ends[0]);
    const Descriptor input(ends[1]);
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.emplace_back("/proc/self/exe", std::vector<std::string>{"test", "rank", way},
                          LaunchOptions{.fds = {segment.fd()},
                                        .environment = local_rank_environment(process_environment(), rank,
                                                                              ranks, segment.fd()),
                                        .error_fd = input.get()});
  }

  // Reads what the ranks write until `last` is there; without it, until all have ended.
  void read_until(const std::string& last) {
    char bytes[4096];
    while (last.empty() || text_.find(last) == std::string::npos) {
      const ssize_t count = read(output_.get(), bytes, sizeof(bytes));
      if (count <= 0) break;
      text_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  std::string end_of(std::size_t rank) {
    while (true) {
      if (const auto how = ranks_[rank].ended()) return *how;
      pollfd end{ranks_[rank].end_fd(), POLLIN, 0};
      poll(&end, 1, 10);
    }
  }

  // The sentences of the ranks, each once.
  std::vector<std::string> sentences() const {
    std::vector<std::string> lines;
    std::istringstream text(text_);
    for (std::string line; std::getline(text, line);)
      if (line != "ready") lines.push_back(line);
    std::ranges::sort(lines);
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
  }

  static std::string describe(int rank, pid_t pid) {
    return "rank " + std::to_string(rank) + " (host " + detect_launch({}).place.host + ", process " +
           std::to_string(pid) + ")";
  }

  std::vector<ChildProcess> ranks_;
  Descriptor output_;
  std::string text_;
};

TEST_F(RankProcesses, Return_EndsQuietly) {
  start(3, "return");
  read_until("");
  EXPECT_EQ(text_, "ready\n");
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), "ended with status 0");
}

TEST_F(RankProcesses, KilledRank_IsNamedByAll) {
  start(3, "sum");
  read_until("ready\n");
  const pid_t killed = ranks_[1].pid();
  ranks_[1].kill();
  read_until("");
  EXPECT_EQ(sentences(), (std::vector{describe(1, killed) + " has ended"}));
  EXPECT_EQ(end_of(0), "ended with status 75");
  EXPECT_EQ(end_of(1), "was ended by signal 9");
  EXPECT_EQ(end_of(2), "ended with status 75");
}

TEST_F(RankProcesses, StoppedRank_IsNamedByAll) {
  start(3, "stop");
  read_until("ready\n");
  const pid_t stopped = ranks_[0].pid();
  ASSERT_TRUE(ranks_[0].stop());
  EXPECT_EQ(end_of(1), "ended with status 75");
  EXPECT_EQ(end_of(2), "ended with status 75");
  ranks_[0].resume();  // and learns what happened meanwhile
  EXPECT_EQ(end_of(0), "ended with status 75");
  read_until("");
  EXPECT_EQ(sentences(), (std::vector{describe(0, stopped) + " has not answered for 2 s"}));
}

TEST_F(RankProcesses, RankThatFails_TellsAll) {
  start(4, "fail");
  read_until("");
  EXPECT_EQ(sentences(), (std::vector{"rank 2 on " + detect_launch({}).place.host + ": cannot read 7.jpg"}));
  EXPECT_EQ(end_of(2), "ended with status 3");
  for (const std::size_t rank : {0U, 1U, 3U}) EXPECT_EQ(end_of(rank), "ended with status 1");
}

TEST_F(RankProcesses, RankThatExits_IsNamedByAll) {
  start(3, "exit");
  const pid_t exits = ranks_[2].pid();
  read_until("");
  EXPECT_EQ(sentences(), (std::vector{describe(2, exits) + " has ended"}));
  EXPECT_EQ(end_of(2), "ended with status 4");
  for (const std::size_t rank : {0U, 1U}) EXPECT_EQ(end_of(rank), "ended with status 75");
}

}  // namespace
}  // namespace tandem
