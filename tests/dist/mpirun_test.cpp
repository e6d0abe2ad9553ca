// Ranks that mpirun starts, which the MPI plugin connects. Skipped where there is no mpirun or no plugin.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "tests/dist/mpirun.h"
#include "tests/dist/process_test.h"

namespace tandem {
namespace {

using Lines = std::vector<std::string>;

const Environment keep_going{{"OMPI_MCA_orte_enable_recovery", "1"}};  // mpirun does not end the other ranks

class Mpirun : public ProcessTest {
 protected:
  void SetUp() override {
    if (const std::string why = missing_mpirun(); !why.empty()) GTEST_SKIP() << why;
  }

  // `more` are further environment variables.
  void start(int ranks, const std::string& way, Environment more = {}) {
    more.insert(mpirun_settings.begin(), mpirun_settings.end());
    for (const auto& entry : process_environment()) more.insert(entry);
    Lines environment;
    for (const auto& [name, value] : more) environment.push_back(name + "=" + value);
    const Descriptor input = open_output();
    mpirun_ =
        ChildProcess("mpirun", {"mpirun", "-n", std::to_string(ranks), program_, "rank", way},
                     {.search_path = true, .environment = std::move(environment), .error_fd = input.get()});
  }

  // The processes of the ranks, once they have written them.
  std::vector<pid_t> read_pids() {
    read_until("ready ");
    std::istringstream line(text_.substr(std::min(text_.size(), text_.find("ready ") + 6)));
    std::vector<pid_t> pids;
    for (pid_t pid = 0; line >> pid;) pids.push_back(pid);
    return pids;
  }

  // Returns when none of the processes is there any more.
  static void await_ends(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids)
      while (kill(pid, 0) == 0) usleep(1000);
  }

  // What the ranks wrote, without what mpirun adds.
  Lines rank_sentences() const {
    Lines lines = sentences();
    std::erase_if(lines, [](const std::string& line) { return line.rfind("rank ", 0) != 0; });
    return lines;
  }

  const std::string program_ = std::filesystem::read_symlink("/proc/self/exe").string();
  ChildProcess mpirun_;
};

class MpirunRanks : public Mpirun, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Mpirun, MpirunRanks, testing::Values(2, 3, 4));

TEST_P(MpirunRanks, AllOperations_GiveTheResultsOfOneProcess) {
  start(GetParam(), "check");
  read_until("");
  Lines expected;
  for (int rank = 0; rank < GetParam(); ++rank)
    expected.push_back("rank " + std::to_string(rank) + " of " + std::to_string(GetParam()) + " is right");
  EXPECT_EQ(sentences(), expected) << text_;  // and nothing else
  EXPECT_EQ(end_of(mpirun_), "ended with status 0");
}

TEST_F(Mpirun, RankThatFails_TellsAll) {
  start(4, "fail", keep_going);
  read_until("");
  EXPECT_EQ(rank_sentences(), (Lines{"rank 2 on " + detect_launch({}).place.host + ": cannot read 7.jpg"}))
      << text_;
  const std::string sentence = ": cannot read 7.jpg";
  int count = 0;
  for (auto at = text_.find(sentence); at != std::string::npos; at = text_.find(sentence, at + 1)) ++count;
  EXPECT_EQ(count, 3) << text_;
}

TEST_F(Mpirun, DifferentSums_AreNamed) {
  start(2, "differ", keep_going);
  read_until("");
  const Lines lines = rank_sentences();
  ASSERT_FALSE(lines.empty()) << text_;
  for (const std::string& line : lines)
    EXPECT_NE(line.find(": [transport] expected a message of "), std::string::npos) << line;
}

TEST_F(Mpirun, KilledRank_IsNamedByAll) {
  start(3, "sum", keep_going);
  const std::vector<pid_t> pids = read_pids();
  ASSERT_EQ(pids.size(), 3U) << text_;
  kill(pids[1], SIGKILL);
  read_until("");
  EXPECT_EQ(rank_sentences(), (Lines{describe(1, pids[1]) + " has ended"})) << text_;
  await_ends(pids);
}

TEST_F(Mpirun, KilledRank_EndsAll) {
  start(3, "sum");
  const std::vector<pid_t> pids = read_pids();
  ASSERT_EQ(pids.size(), 3U) << text_;
  kill(pids[1], SIGKILL);
  read_until("");
  EXPECT_NE(text_.find("rank 1 "), std::string::npos) << text_;  // in our words or mpirun's
  EXPECT_NE(end_of(mpirun_), "ended with status 0");
  await_ends(pids);
}

TEST_F(Mpirun, StoppedRank_IsNamedByAll) {
  start(3, "stop");
  const std::vector<pid_t> pids = read_pids();
  ASSERT_EQ(pids.size(), 3U) << text_;
  kill(pids[0], SIGSTOP);
  read_until("");
  EXPECT_EQ(rank_sentences(), (Lines{describe(0, pids[0]) + " has not answered for 2 s"})) << text_;
  EXPECT_EQ(end_of(mpirun_), "ended with status 75");
  await_ends(pids);
}

TEST_F(Mpirun, WithoutPlugin_IsRefused) {
  start(2, "check", {{"TANDEM_MPI_PLUGIN", "/nowhere/libtandem_mpi.so"}});
  read_until("");
  EXPECT_NE(text_.find("started 2 ranks, but there is no MPI plugin /nowhere/libtandem_mpi.so"),
            std::string::npos)
      << text_;
  EXPECT_EQ(end_of(mpirun_), "ended with status 1");
}

TEST_F(Mpirun, RankOfAnotherMpi_IsRefused) {
  start(2, "check", {{"TANDEM_MPI_PLUGIN", TANDEM_FAKE_PLUGIN}});
  read_until("");
  EXPECT_NE(text_.find("started 2 ranks, but MPI says 1: "), std::string::npos) << text_;
  EXPECT_EQ(end_of(mpirun_), "ended with status 1");
}

}  // namespace
}  // namespace tandem
