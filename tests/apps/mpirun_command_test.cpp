// `mpirun tandem train`: the same bits as one process, the CPUs of its ranks, and what happens when something
// is wrong with one of them. Skipped where there is no mpirun or no plugin.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tandem/core/simd.h"
#include "tandem/process/cpu_affinity.h"
#include "tests/apps/running_program.h"
#include "tests/dist/mpirun.h"
#include "tests/paths.h"
#include "tests/train/log_lines.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

class MpirunCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = missing_mpirun(); !why.empty()) GTEST_SKIP() << why;
    write_small_digits(folder_ / "data");
    for (const auto& [name, value] : mpirun_settings) set(name, value);
    set("TANDEM_MPI_PLUGIN", TANDEM_MPI_PLUGIN_FILE);
  }
  ~MpirunCommand() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }

  // For mpirun and its ranks.
  void set(const std::string& name, const std::string& value) {
    if (setenv(name.c_str(), value.c_str(), 1) == 0) set_.push_back(name);
  }

  static Words words(const std::string& out, const Words& more) {
    Words all{"train", "data",     "--batch-size", "21",        "--shards", "8",     "--optimizer",
              "adam",  "--device", "cpu",          "--workers", "0",        "--out", out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Words mpirun(const Words& options, const Words& words, const std::string& launcher = "mpirun") {
    Words all{launcher};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back(program_file);
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  // The tandem's own lines about an error; mpirun adds its own.
  static Words errors(const std::string& text) {
    Words lines;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);)
      if (line.starts_with("tandem: error: ")) lines.push_back(line.substr(15));
    return lines;
  }
  // One rank of each of these commands.
  ProgramResult run_each(const std::vector<Words>& ranks) {
    Words all{"mpirun"};
    for (const Words& words : ranks) {
      if (all.size() > 1) all.push_back(":");
      all.insert(all.end(), {"-n", "1"});
      all.insert(all.end(), words.begin(), words.end());
    }
    return run_program(all, folder_.path());
  }
  std::filesystem::path run(const std::string& name) const { return folder_ / name; }

  // The CPUs of a process, as the kernel lists them: "0-3,8".
  static std::string cpus_of(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string name, value; status >> name && std::getline(status, value);)
      if (name == "Cpus_allowed_list:") return value;
    return "";
  }

  const std::string host_ = detect_launch({}).place.host;
  TempFolder folder_;
  Words set_;
};

TEST_F(MpirunCommand, Ranks_GiveTheModelOfOneProcess) {
  for (const Words& model :
       {Words{"--layers", "784,24,10", "--epochs", "2"}, {"--model", "cnn", "--epochs", "1"}}) {
    const std::string name = model[1];
    ASSERT_EQ(run_program(words(name, model), folder_.path()).status, 0);
    for (const char* const ranks : {"2", "3", "4"}) {
      const std::string of_ranks = name + ranks;
      const ProgramResult result = run_program(mpirun({"-n", ranks}, words(of_ranks, model)), folder_.path());
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_NE(result.err.find("8 shards on " + std::string(ranks) + " ranks"), std::string::npos)
          << result.err;
      EXPECT_EQ(read_bytes(RunFolder{run(of_ranks)}.best()), read_bytes(RunFolder{run(name)}.best()));
      expect_same_weights(run(name), run(of_ranks));  // and the optimizer's state
      EXPECT_EQ(log_without_times(RunFolder{run(of_ranks)}.log()),
                log_without_times(RunFolder{run(name)}.log()));
    }
  }
}

// The names of Debian, where MPICH may be installed beside Open MPI.
TEST_F(MpirunCommand, PluginBuiltForMpich_GivesTheModelOfOneProcess) {
  const std::string plugin = folder_ / "libtandem_mpi.so";
  const std::string missing =
      run_program({"mpicc.mpich", "-shared", "-fPIC", "-O2", "-I", source_folder, "-o", plugin,
                   std::string(source_folder) + "/tandem/dist/mpi/mpi_transport.c"},
                  RunProgramOptions{});
  if (missing == "mpicc.mpich is not installed") GTEST_SKIP() << missing;
  ASSERT_EQ(missing, "");
  const Words model{"--layers", "784,24,10", "--epochs", "1"};
  const Words mpich = mpirun({"-n", "3"}, words("ranks", model), "mpirun.mpich");
  EXPECT_EQ(errors(run_program(mpich, folder_.path()).err).size(), 1u);  // the plugin is for Open MPI
  set("TANDEM_MPI_PLUGIN", plugin);
  const ProgramResult result = run_program(mpich, folder_.path());
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("8 shards on 3 ranks"), std::string::npos) << result.err;
  ASSERT_EQ(run_program(words("alone", model), folder_.path()).status, 0);
  expect_same_weights(run("alone"), run("ranks"));
}

TEST_F(MpirunCommand, RanksBoundToOneCore_AreWarned) {
  const CpuList cpus = permitted_cpus();
  if (std::ranges::all_of(cpus, [&](int cpu) { return core_of(cpu) == core_of(cpus[0]); }))
    GTEST_SKIP() << "needs two cores";
  const Words bound = mpirun({"-n", "1", "--bind-to", "core"}, words("bound", {"--epochs", "1"}));
  const ProgramResult result = run_program(bound, folder_.path());
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string expected = " of the " + std::to_string(cpus.size()) + " CPUs of host ";
  EXPECT_NE(result.err.find("Warning: mpirun (Open MPI) has bound every rank to one core: "),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("(mpirun --bind-to none uses all)"), std::string::npos) << result.err;
  set("OMP_NUM_THREADS", "1");  // no more is wanted
  const Words wanted = mpirun({"-n", "1", "--bind-to", "core"}, words("wanted", {"--epochs", "1"}));
  EXPECT_EQ(run_program(wanted, folder_.path()).err.find("has bound"), std::string::npos);
}

TEST_F(MpirunCommand, RanksThatAreNotBound_ShareTheCpus) {
  if (process_cpus().size() < 2) GTEST_SKIP() << "needs two CPUs";
  RunningProgram program(mpirun({"-n", "2"}, words("shared", {"--epochs", "1000000", "--save-every", "0"})),
                         folder_.path());
  program.wait_for(RunFolder{run("shared")}.checkpoint());
  const std::vector<pid_t> ranks = program.children();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_NE(cpus_of(ranks[0]), "");
  EXPECT_NE(cpus_of(ranks[0]), cpus_of(ranks[1]));
  kill(ranks[1], SIGTERM);
  EXPECT_EQ(program.wait(), 128 + SIGTERM) << program.err();
  EXPECT_NE(program.err().find("Stopped and saved"), std::string::npos) << program.err();
}

TEST_F(MpirunCommand, RanksThatDiffer_AreNamed) {
  const Words own = words("differ", {"--epochs", "1"});
  const auto command = [&](const Words& before, const Words& after) {
    Words all = before;
    all.push_back(program_file);
    all.insert(all.end(), own.begin(), own.end());
    all.insert(all.end(), after.begin(), after.end());
    return all;
  };
  const std::string ranks = "ranks 0 (host " + host_ + ") and 1 (host " + host_ + ") differ in ";
  const auto expect_named = [&](const Words& other, const std::string& expected) {
    const ProgramResult result = run_each({command({}, {}), other});
    EXPECT_EQ(result.status, 1) << result.err;
    const Words lines = errors(result.err);
    ASSERT_EQ(lines.size(), 1u) << result.err;
    EXPECT_NE(lines[0].find(expected), std::string::npos) << lines[0];
    EXPECT_FALSE(std::filesystem::exists(run("differ")));
  };
  expect_named(command({}, {"--lr", "0.25"}), ranks + "options: ");
  if (simd_level() == SimdLevel::avx512)
    expect_named(command({"-x", "TANDEM_SIMD=avx2"}, {}), ranks + "SIMD: AVX-512 and AVX2");
  write_split(folder_ / "elsewhere/data", make_digits(300, 8), make_digits(100, 9));
  expect_named(command({"--wdir", (folder_ / "elsewhere").string()}, {}),
               "ranks 0 (host " + host_ + ") and 1 (host " + host_ + ") have different data; on rank 1: ");
  std::filesystem::create_directories(folder_ / "nothing");
  expect_named(command({"--wdir", (folder_ / "nothing").string()}, {}), "rank 1 on " + host_ + ": [train] ");
}

TEST_F(MpirunCommand, FolderThatOneRankDoesNotSee_IsNamed) {
  Words own = words("seen", {"--epochs", "1", "--resume", "auto"});
  ASSERT_EQ(run_program(own, folder_.path()).status, 0);
  own.insert(own.begin(), program_file);
  std::filesystem::create_directories(folder_ / "other");
  std::filesystem::create_directory_symlink(folder_ / "data", folder_ / "other/data");
  Words other{"--wdir", (folder_ / "other").string()};
  other.insert(other.end(), own.begin(), own.end());
  const ProgramResult result = run_each({own, other});
  EXPECT_EQ(result.status, 1) << result.err;
  const std::string ranks = "ranks 0 (host " + host_ + ") and 1 (host " + host_ + ")";
  EXPECT_EQ(errors(result.err), Words{"[group] " + ranks +
                                      " differ in the run to resume: seen and none (--out must name a "
                                      "folder that all nodes see)"})
      << result.err;
}

TEST_F(MpirunCommand, WhatAllRanksSee_IsOneLine) {
  const auto expect_line = [&](const Words& command, int status, const std::string& expected) {
    const ProgramResult result = run_program(command, folder_.path());
    EXPECT_EQ(result.status, status) << result.err;
    const Words lines = errors(result.err);
    ASSERT_EQ(lines.size(), 1u) << result.err;
    EXPECT_NE(lines[0].find(expected), std::string::npos) << lines[0];
  };
  const Words own = words("run", {"--epochs", "1"});
  expect_line(mpirun({"-n", "9"}, own), 1, "expected at most 8 ranks");
  expect_line(mpirun({"-n", "2"}, {"train", "data", "--lrr", "1"}), 2, "unknown flag --lrr");
  expect_line(mpirun({"-n", "2"}, {"train", "data", "--ranks", "2"}), 1, "expected no --ranks");
  expect_line(mpirun({"-n", "2", "-x", "TANDEM_MPI_PLUGIN=/nowhere"}, own), 1,
              "there is no MPI plugin /nowhere");
  expect_line(mpirun({"-n", "2", "-x", std::string("TANDEM_MPI_PLUGIN=") + TANDEM_FAKE_PLUGIN}, own), 1,
              "but MPI says 1: ");
  EXPECT_FALSE(std::filesystem::exists(run("run")));
}

// Signals to one rank of three: mpirun ends with this status, and a line says what happened.
TEST_F(MpirunCommand, RankThatIsDisturbed_IsNamedAndTheRunGoesOn) {
  const auto disturb = [&](int signal, std::size_t rank, int status, const std::string& expected) {
    const Words more{"--epochs", "1000000", "--save-every", "0", "--rank-limit", "2", "--resume", "auto"};
    RunningProgram program(mpirun({"-n", "3"}, words("disturbed", more)), folder_.path());
    program.wait_for_new(RunFolder{run("disturbed")}.checkpoint());
    const std::vector<pid_t> ranks = program.children();
    ASSERT_EQ(ranks.size(), 3u) << program.err();
    kill(ranks[rank], signal);
    EXPECT_EQ(program.wait(), status) << program.err();
    EXPECT_NE(program.err().find(expected), std::string::npos) << program.err();
  };
  disturb(SIGSTOP, 0, 75, "error: rank 0 (host " + host_);
  disturb(SIGSTOP, 2, 75, "error: rank 2 (host " + host_);
  disturb(SIGKILL, 1, 128 + SIGKILL, "rank 1 ");  // in our words or mpirun's
  disturb(SIGINT, 1, 128 + SIGINT, "Stopped and saved.");
}

}  // namespace
}  // namespace tandem
