#include "tandem/core/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tandem {
namespace {

class TeamTest : public testing::TestWithParam<int> {};

TEST_P(TeamTest, ArriveAndWait_MakesEarlierWritesVisible) {
  constexpr int rounds = 2000;
  const int threads = GetParam();
  std::vector<int> values(static_cast<std::size_t>(threads), 0);
  std::vector<int> wrong(static_cast<std::size_t>(threads), 0);
  run_team(threads, [&](const TeamMember& member) {
    for (int round = 1; round <= rounds; ++round) {
      values[static_cast<std::size_t>(member.index)] = round;
      member.arrive_and_wait();
      for (const int value : values) wrong[static_cast<std::size_t>(member.index)] += value != round;
      member.arrive_and_wait();
    }
  });
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), rounds);
}

TEST_P(TeamTest, BeginAndEnd_CoverTheWorkOnce) {
  for (const std::int64_t work : {0, 1, 5, 64, 1001}) {
    std::vector<int> done(static_cast<std::size_t>(work), 0);
    run_team(GetParam(), [&](const TeamMember& member) {
      for (std::int64_t i = member.begin(work); i < member.end(work); ++i)
        ++done[static_cast<std::size_t>(i)];
    });
    EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](int times) { return times == 1; })) << work;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, TeamTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace tandem
