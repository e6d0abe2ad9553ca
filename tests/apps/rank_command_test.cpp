// `tandem train --ranks N` as processes: the same bits as one process, and what happens when a rank is
// killed, stopped, told to end, or fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <random>

#include "tests/apps/running_program.h"
#include "tests/train/log_lines.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

class RankCommand : public testing::Test {
 protected:
  RankCommand() { write_small_digits(folder_ / "data"); }

  std::vector<std::string> words(const std::string& out, int ranks, std::vector<std::string> more = {},
                                 const std::string& epochs = "3") {
    std::vector<std::string> all{
        "train",     "data", "--layers", "784,24,10", "--batch-size", "21",
        "--shards",  "4",    "--epochs", epochs,      "--device",     "cpu",
        "--workers", "0",    "--out",    out,         "--ranks",      std::to_string(ranks)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // Trains until a signal comes, and saves all the time.
  std::vector<std::string> endless(const std::string& out, int ranks, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--save-every", "0"});
    return words(out, ranks, more, "1000000");
  }
  std::filesystem::path run(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

TEST_F(RankCommand, Ranks_GiveTheModelOfOneProcess) {
  ASSERT_EQ(run_program(words("alone", 1), folder_.path()).status, 0);
  for (const int ranks : {2, 3, 4}) {
    const std::string name = std::to_string(ranks);
    const ProgramResult result = run_program(words(name, ranks), folder_.path());
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find("4 shards on " + name + " ranks"), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.out, '\n'), 6) << result.out;  // three epochs and the summary, once
    EXPECT_EQ(read_bytes(RunFolder{run(name)}.best()), read_bytes(RunFolder{run("alone")}.best()));
    expect_same_weights(run("alone"), run(name));
  }
}

TEST_F(RankCommand, Accumulate_HasAShardPerPass) {
  const auto train = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"train",     "data", "--model",  "cnn", "--limit",      "60",
                                 "--epochs",  "1",    "--device", "cpu", "--batch-size", "20",
                                 "--workers", "0",    "--out",    out};
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult result = run_program(all, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
  };
  train("shards", {"--shards", "4", "--batch-norm", "shard"});
  train("passes", {"--accumulate", "4"});
  train("both", {"--accumulate", "2", "--ranks", "2"});
  expect_same_weights(run("shards"), run("passes"));
  expect_same_weights(run("shards"), run("both"));
}

TEST_F(RankCommand, MoreRanksThanShards_IsRefused) {
  const ProgramResult result = run_program(words("many", 5), folder_.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("expected at most 4 ranks"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(run("many")));
}

TEST_F(RankCommand, MoreShardsThanImagesOfABatch_AreRefused) {
  const ProgramResult result =
      run_program({"train", "data", "--batch-size", "21", "--shards", "22", "--ranks", "2"}, folder_.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("expected at most 21 shards, one per image of a batch, got 22"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
}

TEST_F(RankCommand, WrongNumbers_AreUsageErrors) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--ranks", "0"},
                                               {"--shards", "0"},
                                               {"--accumulate", "0"},
                                               {"--rank-limit", "0"},
                                               {"--comm", "nccl"}}) {
    std::vector<std::string> all{"train", "data"};
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(all, folder_.path()).status, 2) << more[0];
  }
}

TEST_F(RankCommand, RanksInsideSrun_AreRefused) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  setenv("SLURM_PROCID", "0", 1);
  const ProgramResult result = run_program(words("inside", 2), folder_.path());
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURM_PROCID");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("srun has started 4 ranks"), std::string::npos) << result.err;
}

// Every process is gone, and the rank is named once; the run goes on from its checkpoint on other ranks.
TEST_F(RankCommand, KilledRank_IsNamedAndTheRunGoesOn) {
  for (const std::size_t victim : {0u, 2u}) {
    const std::string name = "killed" + std::to_string(victim);
    RunningProgram program(endless(name, 3), folder_.path());
    program.wait_for(RunFolder{run(name)}.checkpoint());
    const std::vector<pid_t> ranks = program.children();
    ASSERT_EQ(ranks.size(), 3u);
    kill(ranks[victim], SIGKILL);
    EXPECT_EQ(program.wait(), 75);
    for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
    const std::string err = program.err(), named = "rank " + std::to_string(victim);
    EXPECT_NE(err.find("error: " + named), std::string::npos) << err;
    EXPECT_EQ(err.find("error:"), err.rfind("error:")) << err;
    const auto resumed = endless(name, 2, {"--resume"});
    RunningProgram again(resumed, folder_.path());
    again.wait_for_new(RunFolder{run(name)}.checkpoint());
    kill(again.pid(), SIGTERM);
    EXPECT_EQ(again.wait(), 128 + SIGTERM) << again.err();
    EXPECT_NE(again.err().find("Resuming"), std::string::npos) << again.err();
  }
}

// Kills at random moments, each followed by a restart on another number of ranks, end with the run of one
// undisturbed process.
TEST_F(RankCommand, Chaos_EndsWithTheUndisturbedRun) {
  std::mt19937 random(20261116);
  const auto below = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  const std::filesystem::path checkpoint = RunFolder{run("chaos")}.checkpoint();
  int ranks = 3;
  for (int kills = 0; kills < 6; ++kills) {
    RunningProgram program(endless("chaos", ranks, {"--resume", "auto"}), folder_.path());
    for (std::size_t saves = 1 + below(3); saves > 0; --saves) program.wait_for_new(checkpoint);
    const std::vector<pid_t> children = program.children();
    ASSERT_EQ(children.size(), ranks == 1 ? 0u : static_cast<std::size_t>(ranks)) << program.err();
    kill(children.empty() ? program.pid() : children[below(children.size())], SIGKILL);
    EXPECT_EQ(program.wait(), children.empty() ? -SIGKILL : 75) << program.err();
    for (const pid_t rank : children) EXPECT_TRUE(is_gone(rank));
    ranks = 1 + (ranks + static_cast<int>(below(3))) % 4;  // another one
  }
  const std::string log = text_of(RunFolder{run("chaos")}.log());
  const std::string epochs = std::to_string(std::ranges::count(log, '\n') + 2);
  const ProgramResult last = run_program(words("chaos", 4, {"--resume", "auto"}, epochs), folder_.path());
  ASSERT_EQ(last.status, 0) << last.err;
  ASSERT_EQ(run_program(words("calm", 1, {}, epochs), folder_.path()).status, 0);
  expect_same_weights(run("calm"), run("chaos"));
  EXPECT_EQ(log_without_times(RunFolder{run("calm")}.log()),
            log_without_times(RunFolder{run("chaos")}.log()));
}

TEST_F(RankCommand, StoppedRank_IsNamedAfterTheLimit) {
  for (const std::size_t victim : {0u, 1u}) {
    const std::string name = "stopped" + std::to_string(victim);
    RunningProgram program(endless(name, 3, {"--rank-limit", "2"}), folder_.path());
    program.wait_for(RunFolder{run(name)}.checkpoint());
    const std::vector<pid_t> ranks = program.children();
    ASSERT_EQ(ranks.size(), 3u);
    kill(ranks[victim], SIGSTOP);
    EXPECT_EQ(program.wait(), 75);
    for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
    const std::string err = program.err();
    EXPECT_NE(err.find("error: rank " + std::to_string(victim) + " (host "), std::string::npos) << err;
    EXPECT_EQ(err.find("error:"), err.rfind("error:")) << err;
  }
}

TEST_F(RankCommand, TermToOneRank_StopsAllAfterTheSameStep) {
  for (const int target : {-1, 0, 2}) {
    const std::string name = "term" + std::to_string(target + 1);
    RunningProgram program(endless(name, 3), folder_.path());
    program.wait_for(RunFolder{run(name)}.checkpoint());
    const std::vector<pid_t> ranks = program.children();
    ASSERT_EQ(ranks.size(), 3u);
    kill(target < 0 ? program.pid() : ranks[static_cast<std::size_t>(target)], SIGTERM);
    EXPECT_EQ(program.wait(), 128 + SIGTERM);
    for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
    EXPECT_NE(program.err().find("Stopped and saved"), std::string::npos) << program.err();
  }
}

// A rank that is stopped cannot take part in saving.
TEST_F(RankCommand, SecondTerm_KillsAll) {
  RunningProgram program(endless("second", 3, {"--rank-limit", "1000"}), folder_.path());
  program.wait_for(RunFolder{run("second")}.checkpoint());
  const std::vector<pid_t> ranks = program.children();
  ASSERT_EQ(ranks.size(), 3u);
  kill(ranks[1], SIGSTOP);
  kill(program.pid(), SIGTERM);
  while (program.has_pending(SIGTERM)) usleep(1000);  // two signals at once would be one
  kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGKILL) << program.err();
  for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
  EXPECT_TRUE(std::filesystem::exists(RunFolder{run("second")}.checkpoint()));
}

TEST_F(RankCommand, SaveRequestToAnyRank_SavesAndGoesOn) {
  RunningProgram program(words("save", 3, {"--save-every", "100000"}, "1000000"), folder_.path());
  program.wait_for(RunFolder{run("save")}.best());
  for (const std::size_t target : {0u, 2u}) {
    const std::vector<pid_t> ranks = program.children();
    ASSERT_EQ(ranks.size(), 3u) << program.err();
    std::filesystem::remove(RunFolder{run("save")}.checkpoint());
    kill(ranks[target], SIGUSR1);
    program.wait_for(RunFolder{run("save")}.checkpoint());
  }
  kill(program.pid(), SIGINT);
  EXPECT_EQ(program.wait(), 128 + SIGINT) << program.err();
}

TEST_F(RankCommand, FolderThatCannotBeMade_IsOneLine) {
  std::ofstream(folder_ / "file") << "x";
  const ProgramResult result = run_program(words("file/run", 2), folder_.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("cannot create the folder file/run: Not a directory"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
}

// A learning rate at which the loss overflows: one rank says it for all, and where it began. How many steps
// are checked together depends on the speed of the machine.
TEST_F(RankCommand, LossThatIsNotFinite_IsOneLine) {
  const ProgramResult result =
      run_program({"train", "data", "--model", "cnn", "--lr", "1e20", "--shards", "4", "--ranks", "3",
                   "--device", "cpu", "--workers", "0", "--out", "nan"},
                  folder_.path());
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(result.err.find("the loss is not finite at step ") != std::string::npos ||
              result.err.find("the loss is not finite in steps ") != std::string::npos)
      << result.err;
  EXPECT_TRUE(result.err.find(" of epoch 1, on all ranks: ") != std::string::npos ||
              result.err.find(" of epoch 1, first on rank ") != std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
}

TEST_F(RankCommand, OtherShards_AreMarkedWhenAskedFor) {
  ASSERT_EQ(run_program(words("shards", 2, {}, "1"), folder_.path()).status, 0);
  const std::vector<std::string> resume{"train", "--resume", "shards", "--ranks", "2", "--epochs"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), resume.begin(), resume.end());
    return run_program(more, folder_.path());
  };
  const ProgramResult same = with({"2"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.err.find("4 shards on 2 ranks"), std::string::npos) << same.err;
  const ProgramResult other = with({"3", "--shards", "8"});
  EXPECT_EQ(other.status, 0) << other.err;
  const std::string sentence = "batches have 8 shards from here on, 4 before";
  EXPECT_NE(other.err.find("Warning: " + sentence), std::string::npos) << other.err;
  EXPECT_NE(text_of(run("shards") / "report.html").find(sentence), std::string::npos);
}

// As after SIGTERM, and the run goes on later.
TEST_F(RankCommand, Until_SavesAndStopsAllRanks) {
  for (const int ranks : {1, 2}) {
    const std::time_t end = std::time(nullptr) + 3;
    char text[32] = {};
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&end));
    const std::string name = "until" + std::to_string(ranks);
    const ProgramResult result = run_program(endless(name, ranks, {"--until", text}), folder_.path());
    EXPECT_EQ(result.status, 128 + SIGTERM) << result.err;
    EXPECT_NE(result.err.find("Time is up: stopped and saved."), std::string::npos) << result.err;
    EXPECT_TRUE(std::filesystem::exists(RunFolder{run(name)}.checkpoint()));
  }
}

TEST_F(RankCommand, UntilInThePast_IsAUsageError) {
  for (const char* text : {"1999-12-31T23:59", "+0", "noon"}) {
    const ProgramResult result = run_program(endless("past", 2, {"--until", text}), folder_.path());
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
}

// SLURM says when the job ends: a tenth of the time that is left before it.
TEST_F(RankCommand, EndOfTheSlurmJob_StopsTheRun) {
  setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 4).c_str(), 1);
  const ProgramResult result = run_program(endless("job", 1), folder_.path());
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.err;
  EXPECT_NE(result.err.find("Time is up: stopped and saved."), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tandem
