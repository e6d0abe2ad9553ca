// `tandem train --ranks N --device cuda`: the bits of one process, and what happens when a rank is lost. The
// ranks share the first GPU, which NCCL refuses unless it takes them for several nodes (NCCL_HOSTID, set for
// every rank by TANDEM_TEST_SHARED_GPU); they exchange everything over the loopback device then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tandem/device/device.h"
#include "tandem/dist/nccl_library.h"
#include "tests/apps/running_program.h"
#include "tests/train/log_lines.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

class GpuRank : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
    if (!missing_nccl().empty()) GTEST_SKIP() << missing_nccl();
    setenv("TANDEM_TEST_SHARED_GPU", "1", 1);
  }
  void TearDown() override { unsetenv("TANDEM_TEST_SHARED_GPU"); }

  static Words joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static Words digits(const std::string& out, int ranks, const Words& more) {
    return joined({"train", "data", "--validation", "0", "--shards", "4", "--batch-size", "21", "--device",
                   "cuda", "--augment", "none", "--out", out, "--ranks", std::to_string(ranks)},
                  more);
  }
  static Words cnn(const std::string& out, int ranks, const Words& more = {}) {
    return digits(out, ranks, joined({"--model", "cnn", "--limit", "130", "--epochs", "2"}, more));
  }
  // Trains until a signal comes, and saves all the time.
  static Words endless(const std::string& out, int ranks, const Words& more = {}) {
    return digits(out, ranks, joined({"--model", "cnn", "--epochs", "1000000", "--save-every", "0"}, more));
  }
  std::filesystem::path run(const std::string& name) const { return folder_ / name; }

  void expect_same_run(const std::string& a, const std::string& b) const {
    expect_same_weights(run(a), run(b));
    EXPECT_EQ(read_bytes(RunFolder{run(a)}.best()), read_bytes(RunFolder{run(b)}.best())) << b;
    EXPECT_EQ(log_without_times(RunFolder{run(a)}.log()), log_without_times(RunFolder{run(b)}.log())) << b;
  }

  TempFolder folder_;
};

struct GpuRankCase {
  std::string name;
  bool photographs;
  std::vector<int> ranks;       // by NCCL
  std::vector<int> host_ranks;  // through the CPU
  Words more;
};

std::vector<GpuRankCase> gpu_rank_cases() {
  return {
      // Six batches of 21 and the rest.
      {"cnn", false, {2, 3, 4}, {2}, {"--model", "cnn", "--limit", "130", "--epochs", "2"}},
      // A last batch of two images, so that two of four ranks have none.
      {"empty_part", false, {4}, {}, {"--model", "cnn", "--limit", "128", "--epochs", "1"}},
      {"perceptron", false, {3}, {}, {"--layers", "784,24,10", "--dropout", "0.4", "--epochs", "2"}},
      {"batch_norm", true, {2, 3, 4}, {3}, {"--batch-size", "10", "--epochs", "3"}},
      {"shard_norm",
       true,
       {4},
       {},
       {"--batch-size", "12", "--batches-per-epoch", "4", "--batch-norm", "shard", "--epochs", "1"}},
      {"mixup", true, {2}, {}, {"--batch-size", "10", "--epochs", "2", "--mixup", "0.4"}},
      {"bf16", true, {2}, {}, {"--batch-size", "10", "--epochs", "2", "--precision", "bf16"}},
  };
}

class GpuRankBits : public GpuRank, public testing::WithParamInterface<GpuRankCase> {
 protected:
  Words words(const std::string& out, int ranks, const Words& more = {}) const {
    const Words both = joined(GetParam().more, more);
    if (!GetParam().photographs) return digits(out, ranks, both);
    return joined({"train",        "data",         "--model",  "resnet18", "--pretrained",
                   "none",         "--image-size", "64",       "--lr",     "0.01",
                   "--augment-on", "gpu",          "--shards", "4",        "--device",
                   "cuda",         "--out",        out,        "--ranks",  std::to_string(ranks)},
                  both);
  }
};

TEST_P(GpuRankBits, Ranks_GiveTheModelOfOneProcess) {
  if (GetParam().photographs)
    write_photos(folder_ / "data", 14);
  else
    write_small_digits(folder_ / "data");
  const ProgramResult alone = run_program(words("alone", 1), folder_.path());
  ASSERT_EQ(alone.status, 0) << alone.err;
  const auto train = [&](const std::string& name, int ranks, const Words& more, const char* said) {
    const ProgramResult result = run_program(words(name, ranks, more), folder_.path());
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
    expect_same_run("alone", name);
  };
  for (const int ranks : GetParam().ranks)
    train(std::to_string(ranks), ranks, {}, "captured as graphs on cuda:0, gradients by NCCL");
  for (const int ranks : GetParam().host_ranks)
    train("host" + std::to_string(ranks), ranks, {"--comm", "host"}, "gradients through the CPU");
}

INSTANTIATE_TEST_SUITE_P(Networks, GpuRankBits, testing::ValuesIn(gpu_rank_cases()),
                         [](const auto& one) { return one.param.name; });

TEST_F(GpuRank, Passes_GiveTheModelOfOne) {
  write_photos(folder_ / "data", 14);
  for (const std::string passes : {"1", "2", "4"}) {
    const ProgramResult result =
        run_program({"train",        "data", "--model",      "resnet18", "--pretrained",        "none",
                     "--image-size", "64",   "--lr",         "0.01",     "--augment-on",        "gpu",
                     "--shards",     "4",    "--device",     "cuda",     "--batches-per-epoch", "4",
                     "--batch-size", "12",   "--epochs",     "2",        "--batch-norm",        "shard",
                     "--out",        passes, "--accumulate", passes},
                    folder_.path());
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find("captured as graphs"), std::string::npos) << result.err;
    expect_same_run("1", passes);
  }
}

TEST_F(GpuRank, KilledRank_IsNamedAndAllEnd) {
  write_small_digits(folder_ / "data");
  RunningProgram program(endless("killed", 2), folder_.path());
  program.wait_for(RunFolder{run("killed")}.checkpoint());
  const std::vector<pid_t> ranks = program.children();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGKILL);
  EXPECT_EQ(program.wait(), 75);
  for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
  EXPECT_NE(program.err().find("error: rank 1"), std::string::npos) << program.err();
}

TEST_F(GpuRank, StoppedRank_IsNamedAfterTheLimit) {
  write_small_digits(folder_ / "data");
  RunningProgram program(endless("stopped", 2, {"--rank-limit", "2"}), folder_.path());
  program.wait_for(RunFolder{run("stopped")}.checkpoint());
  const std::vector<pid_t> ranks = program.children();
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGSTOP);
  EXPECT_EQ(program.wait(), 75);
  for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
  EXPECT_NE(program.err().find("error: rank 1"), std::string::npos) << program.err();
}

TEST_F(GpuRank, TermToOneRank_StopsAllAndTheRunGoesOnAlone) {
  write_small_digits(folder_ / "data");
  RunningProgram program(endless("term", 2), folder_.path());
  program.wait_for(RunFolder{run("term")}.checkpoint());
  kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM) << program.err();
  RunningProgram again(endless("term", 1, {"--resume"}), folder_.path());
  again.wait_for_new(RunFolder{run("term")}.checkpoint());
  kill(again.pid(), SIGTERM);
  EXPECT_EQ(again.wait(), 128 + SIGTERM) << again.err();
  EXPECT_NE(again.err().find("Resuming"), std::string::npos) << again.err();
}

TEST_F(GpuRank, TwoRanksWithOneGpu_AreRefusedUnlessThroughTheCpu) {
  if (cuda_device_count() > 1) GTEST_SKIP() << "several GPUs";
  unsetenv("TANDEM_TEST_SHARED_GPU");
  write_small_digits(folder_ / "data");
  const ProgramResult refused = run_program(cnn("refused", 2), folder_.path());
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("ranks 0 and 1"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("have the same GPU"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("(--comm host"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("error:"), refused.err.rfind("error:")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(run("refused")));
  EXPECT_EQ(run_program(cnn("host", 2, {"--comm", "host"}), folder_.path()).status, 0);
}

}  // namespace
}  // namespace tandem
