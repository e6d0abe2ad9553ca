// Groups of local processes: what the others see when one is killed, stopped, fails or exits.
#include <string>
#include <vector>

#include "tandem/dist/launch.h"
#include "tandem/dist/local_segment.h"
#include "tests/dist/process_test.h"

namespace tandem {
namespace {

class RankProcesses : public ProcessTest {
 protected:
  void start(int ranks, const std::string& way) {
    const LocalSegment segment(ranks);
    const Descriptor input = open_output();
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.emplace_back("/proc/self/exe", std::vector<std::string>{"test", "rank", way},
                          LaunchOptions{.fds = {segment.fd()},
                                        .environment = local_rank_environment(process_environment(), rank,
                                                                              ranks, segment.fd()),
                                        .error_fd = input.get()});
      segment.set_process(rank, ranks_.back().pid());
    }
  }

  std::string end_of(std::size_t rank) { return ProcessTest::end_of(ranks_[rank]); }

  std::vector<ChildProcess> ranks_;
};

TEST_F(RankProcesses, AllOperations_GiveTheResultsOfOneProcess) {
  start(3, "check");
  read_until("");
  EXPECT_EQ(sentences(), (std::vector<std::string>{"rank 0 of 3 is right", "rank 1 of 3 is right",
                                                   "rank 2 of 3 is right"}));
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), "ended with status 0");
}

TEST_F(RankProcesses, RankThatEndsBeforeItAttaches_IsNamedByAll) {
  start(3, "early");
  read_until("");
  EXPECT_EQ(sentences(), (std::vector<std::string>{"rank 1 has ended before all ranks had started"}));
  EXPECT_EQ(end_of(1), "ended with status 5");
  for (const std::size_t rank : {0U, 2U}) EXPECT_EQ(end_of(rank), "ended with status 75");
}

TEST_F(RankProcesses, Return_EndsQuietly) {
  start(3, "return");
  read_until("");
  EXPECT_EQ(sentences(), std::vector<std::string>());
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), "ended with status 0");
}

TEST_F(RankProcesses, KilledRank_IsNamedByAll) {
  start(3, "sum");
  read_until("ready");
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
  read_until("ready");
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
