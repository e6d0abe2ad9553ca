// How ranks share the CPUs of a node, by the masks they were started with.
#include "tandem/train/rank_cpus.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem {
namespace {

constexpr int no_quota = 1 << 20;

CpuList range(int begin, int end) {
  CpuList cpus;
  for (int cpu = begin; cpu < end; ++cpu) cpus.push_back(cpu);
  return cpus;
}

// Every CPU is a core.
CpuCore single(int cpu) {
  return {.package = 0, .first_cpu = cpu};
}
// CPUs i and i + 8 are one core.
CpuCore paired(int cpu) {
  return {.package = 0, .first_cpu = cpu % 8};
}
// Two packages, whose CPUs alternate.
CpuCore alternating(int cpu) {
  return {.package = cpu % 2, .first_cpu = cpu};
}

std::vector<CpuList> shares(const NodeCpus& node, const CoreFunction& core = single) {
  std::vector<CpuList> all;
  for (int rank = 0; rank < static_cast<int>(node.masks.size()); ++rank)
    all.push_back(share_cpus(node, rank, core).cpus);
  return all;
}

TEST(RankCpus, Parts_CoverAllCpusOnce) {
  for (const int ranks : {1, 2, 3, 5, 16}) {
    CpuList all;
    for (int rank = 0; rank < ranks; ++rank)
      for (const int cpu : part_of_cpus(range(0, 16), ranks, rank, single)) all.push_back(cpu);
    EXPECT_EQ(all, range(0, 16)) << ranks;
  }
  EXPECT_EQ(part_of_cpus(range(0, 2), 3, 1, single), range(0, 2));  // fewer CPUs than ranks
  EXPECT_EQ(part_of_cpus({}, 2, 1, single), CpuList());
}

TEST(RankCpus, CpusOfACore_StayTogether) {
  EXPECT_EQ(part_of_cpus(range(0, 16), 2, 0, paired), (CpuList{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(part_of_cpus(range(0, 16), 2, 1, paired), (CpuList{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(part_of_cpus(range(0, 8), 2, 1, alternating), (CpuList{1, 3, 5, 7}));
}

TEST(RankCpus, SameMask_IsSharedOut) {
  const NodeCpus node{
      .masks = {range(0, 16), range(0, 16), range(0, 16)}, .permitted = 16, .quota = no_quota};
  EXPECT_EQ(shares(node), (std::vector<CpuList>{range(0, 5), range(5, 10), range(10, 16)}));
  EXPECT_EQ(share_cpus(node, 0, single).usable, 5);
  EXPECT_EQ(share_cpus(node, 2, single).usable, 6);
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
}

TEST(RankCpus, DifferentMasks_AreKept) {
  const NodeCpus node{.masks = {range(0, 8), range(8, 16)}, .permitted = 16, .quota = no_quota};
  EXPECT_EQ(shares(node), node.masks);
  EXPECT_EQ(share_cpus(node, 1, single).usable, 8);
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
}

// As mpirun binds more than two ranks to the packages of a machine in turn.
TEST(RankCpus, RanksOfTheSamePackage_ShareIt) {
  const NodeCpus node{
      .masks = {range(0, 8), range(8, 16), range(0, 8), range(8, 16)}, .permitted = 16, .quota = no_quota};
  EXPECT_EQ(shares(node), (std::vector<CpuList>{range(0, 4), range(8, 12), range(4, 8), range(12, 16)}));
}

TEST(RankCpus, MoreRanksThanCpus_HaveOneThreadEach) {
  const NodeCpus node{.masks = std::vector<CpuList>(4, range(0, 2)), .permitted = 2, .quota = no_quota};
  EXPECT_EQ(shares(node), node.masks);
  EXPECT_EQ(share_cpus(node, 3, single).usable, 1);
}

TEST(RankCpus, Quota_IsDividedByTheRanks) {
  const NodeCpus node{.masks = {range(0, 16), range(0, 16)}, .permitted = 16, .quota = 6};
  EXPECT_EQ(share_cpus(node, 0, single).cpus, range(0, 8));
  EXPECT_EQ(share_cpus(node, 0, single).usable, 3);
}

TEST(RankCpus, RanksBoundToOneCoreEach_AreFound) {
  NodeCpus node{.masks = {{0}, {1}}, .permitted = 16, .quota = no_quota};
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 2);
  EXPECT_EQ(shares(node), node.masks);
  node.permitted = 2;  // all there are
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
  node.permitted = 16;
  node.quota = 2;  // more may not be used
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
  node = {.masks = {{0, 8}, {1, 9}}, .permitted = 16, .quota = no_quota};  // each both CPUs of a core
  EXPECT_EQ(cpus_of_bound_ranks(node, paired), 4);
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
  node.masks = {{0}, range(1, 16)};  // only one of them
  EXPECT_EQ(cpus_of_bound_ranks(node, single), 0);
}

// A process without a launcher, and local ranks, which have their shares already.
TEST(RankCpus, OtherProcesses_KeepTheirCpus) {
  const CpuList before = process_cpus();
  const auto group = solo_group();
  EXPECT_EQ(take_share_of_cpus(*group, Launcher::none), "");
  EXPECT_EQ(take_share_of_cpus(*group, Launcher::local), "");
  EXPECT_EQ(process_cpus(), before);
}

}  // namespace
}  // namespace tandem
