// `mpirun tandem train`: the same bits as one process, and the CPUs of its ranks. Skipped where there is no
// mpirun or no plugin.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tandem/process/cpu_affinity.h"
#include "tests/apps/running_program.h"
#include "tests/dist/mpirun.h"
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
  static Words mpirun(const Words& options, const Words& words) {
    Words all{"mpirun"};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back(TANDEM_PROGRAM);
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::filesystem::path run(const std::string& name) const { return folder_ / name; }

  // The CPUs of a process, as the kernel lists them: "0-3,8".
  static std::string cpus_of(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string name, value; status >> name && std::getline(status, value);)
      if (name == "Cpus_allowed_list:") return value;
    return "";
  }

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

}  // namespace
}  // namespace tandem
