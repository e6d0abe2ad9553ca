#include "tandem/dist/launch.h"

#include <unistd.h>

#include <algorithm>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Launch, NoVariables_IsOneProcess) {
  const LaunchedRank found = detect_launch({{"HOME", "/root"}});
  EXPECT_EQ(found.launcher, Launcher::none);
  EXPECT_EQ(found.place.rank, 0);
  EXPECT_EQ(found.place.size, 1);
  EXPECT_EQ(found.place.local_size, 1);
  EXPECT_FALSE(found.place.host.empty());
  EXPECT_EQ(found.place.pid, getpid());
  EXPECT_EQ(found.segment_fd, -1);
}

struct LaunchCase {
  const char* name;
  Environment environment;
  Launcher launcher;
  Place place;  // without host and pid

  friend std::ostream& operator<<(std::ostream& out, const LaunchCase& one) { return out << one.name; }
};

class LaunchTable : public testing::TestWithParam<LaunchCase> {};

TEST_P(LaunchTable, Variables_GiveThePlace) {
  LaunchedRank found = detect_launch(GetParam().environment);
  EXPECT_EQ(name_of(found.launcher), name_of(GetParam().launcher));
  found.place.host = GetParam().place.host;
  found.place.pid = 0;
  EXPECT_EQ(found.place, GetParam().place);
}

INSTANTIATE_TEST_SUITE_P(
    Launch, LaunchTable,
    testing::Values(
        LaunchCase{"Local",
                   {{"TANDEM_RANK", "2"}, {"TANDEM_RANKS", "4"}, {"TANDEM_RANK_FD", "7"}},
                   Launcher::local,
                   {.rank = 2, .size = 4, .local_rank = 2, .local_size = 4}},
        LaunchCase{"SlurmStep",
                   {{"SLURM_NTASKS", "7"},
                    {"SLURM_STEP_NUM_TASKS", "7"},
                    {"SLURM_PROCID", "6"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_NODEID", "3"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}},
                   Launcher::slurm,
                   {.rank = 6, .size = 7, .local_rank = 0, .local_size = 1, .node = 3}},
        LaunchCase{"SlurmStepOnOneNode",
                   {{"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_PROCID", "1"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_NODEID", "0"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2"}},
                   Launcher::slurm,
                   {.rank = 1, .size = 2, .local_rank = 1, .local_size = 2}},
        LaunchCase{"SallocWithoutAStep",
                   {{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "12"}, {"SLURM_TASKS_PER_NODE", "4"}},
                   Launcher::none,
                   {}},
        LaunchCase{
            "BatchScript",
            {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}},
            Launcher::none,
            {}},
        LaunchCase{"OpenMpiInsideAnAllocation",
                   {{"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_PROCID", "1"},
                    {"OMPI_COMM_WORLD_RANK", "5"},
                    {"OMPI_COMM_WORLD_SIZE", "8"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
                   Launcher::open_mpi,
                   {.rank = 5, .size = 8, .local_rank = 1, .local_size = 4}},
        LaunchCase{"Mpich",
                   {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
                   Launcher::mpich,
                   {.rank = 3, .size = 4, .local_rank = 1, .local_size = 2}},
        LaunchCase{"MpichWithoutLocalRanks",
                   {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}},
                   Launcher::mpich,
                   {.rank = 3, .size = 4}}),
    [](const auto& test) { return test.param.name; });

TEST(Launch, SlurmNode_NamesTheHost) {
  Environment environment{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURMD_NODENAME", "n2"}};
  EXPECT_EQ(detect_launch(environment).place.host, "n2");
  environment["OMPI_COMM_WORLD_SIZE"] = "1";
  environment["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_NE(detect_launch(environment).place.host, "n2");  // the variable is that of mpirun's daemon
}

TEST(Launch, WrongValues_AreNamed) {
  EXPECT_EQ(error_text([] {
              detect_launch({{"TANDEM_RANK", "4"}, {"TANDEM_RANKS", "4"}});
            }),
            "[launch] expected a rank below 4 in TANDEM_RANK, got 4");
  EXPECT_EQ(error_text([] {
              detect_launch({{"PMI_SIZE", "4"}});
            }),
            "[launch] expected a rank below 4 in PMI_RANK, got none");
  EXPECT_EQ(error_text([] {
              detect_launch({{"TANDEM_RANK", "1"}, {"TANDEM_RANKS", "four"}});
            }),
            "[launch] expected a number of at least 1 in TANDEM_RANKS, got \"four\"");
  EXPECT_EQ(error_text([] {
              detect_launch({{"TANDEM_RANK", "-1"}, {"TANDEM_RANKS", "4"}});
            }),
            "[launch] expected a number of at least 0 in TANDEM_RANK, got \"-1\"");
  EXPECT_EQ(error_text([] {
              detect_launch({{"TANDEM_RANK", "1"}, {"TANDEM_RANKS", "4"}});
            }),
            "[launch] expected the descriptor of the ranks' shared memory in TANDEM_RANK_FD, got none");
}

TEST(Launch, LocalRankEnvironment_IsDetected) {
  const std::vector<std::string> entries =
      local_rank_environment({{"HOME", "/root"}, {"TANDEM_RANK", "0"}}, 3, 4, 9);
  Environment environment;
  for (const std::string& entry : entries)
    environment[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  EXPECT_EQ(environment.size(), 4U);
  EXPECT_EQ(environment["HOME"], "/root");
  const LaunchedRank found = detect_launch(environment);
  EXPECT_EQ(found.launcher, Launcher::local);
  EXPECT_EQ(found.place.rank, 3);
  EXPECT_EQ(found.place.size, 4);
  EXPECT_EQ(found.segment_fd, 9);
}

TEST(Launch, LocalRanksOfOneGpu_AreNodesToNccl) {
  const std::vector<std::string> entries = local_rank_environment({{"TANDEM_TEST_SHARED_GPU", "1"}}, 3, 4, 9);
  for (const char* entry : {"NCCL_HOSTID=3", "NCCL_SOCKET_IFNAME=lo"})
    EXPECT_NE(std::ranges::find(entries, entry), entries.end()) << entry;
}

}  // namespace
}  // namespace tandem
