// `tandem submit`: the script, what it refuses, and what the script does with fake srun, scontrol and sbatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/apps/program.h"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// With commands of SLURM that write down how they were called.
class Submit : public testing::Test {
 protected:
  Submit() {
    put_command("srun", "printf '%s\\0' \"$@\" >srun.words\nexit \"$SRUN_STATUS\"\n");
    put_command("scontrol", "echo \"$@\" >>scontrol.words\n");
    put_command("sbatch",
                "cat \"$1\" >sbatch.script\necho Submitted batch job 7\nexit \"${SBATCH_STATUS:-0}\"\n");
  }

  void put_command(const std::string& name, const std::string& body) {
    std::filesystem::create_directories(folder_ / "bin");
    put_bytes(folder_ / "bin" / name, "#!/bin/bash\n" + body);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }

  Words job(const Words& flags, const Words& more = {}) const {
    return Words{"submit"} + flags + Words{"--", "train", "digits", "--out", "/runs/a"} + more;
  }
  ProgramResult submit(const Words& words) const { return run_program(words, folder_.path()); }
  std::string script(const Words& flags, const Words& more = {}) const {
    const ProgramResult result = submit(job(flags, more));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  // Runs a script as sbatch would; returns its exit status.
  int run(const std::string& text, int srun_status, int restarts = 0) {
    put_bytes(folder_ / "job.sh", text);
    std::filesystem::remove(folder_ / "scontrol.words");
    const std::string command =
        "cd '" + folder_.path().string() +
        "' && PATH=\"$PWD/bin:$PATH\" SLURM_JOB_ID=42 SLURM_CPUS_PER_TASK=3 " +
        (restarts > 0 ? "SLURM_RESTART_COUNT=" + std::to_string(restarts) : std::string()) +
        " SRUN_STATUS=" + std::to_string(srun_status) + " bash job.sh >job.out 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // What srun was given.
  Words srun_words() const {
    Words words;
    std::string all = text_of(folder_ / "srun.words");
    for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1)
      words.emplace_back(all.c_str() + at);
    return words;
  }
  bool requeued() const { return std::filesystem::exists(folder_ / "scontrol.words"); }

  TempFolder folder_;
};

TEST_F(Submit, AllFlags_AreInTheScript) {
  const std::string text = script({"--nodes", "2", "--ranks-per-node", "4", "--cpus-per-rank", "6",
                                   "--gpus-per-rank", "1", "--time", "4:00:00", "--partition", "gpu",
                                   "--account", "lab", "--mem", "64G", "--retries", "5"});
  EXPECT_EQ(text.rfind("#!/bin/bash\n", 0), 0u) << text;
  for (const char* line :
       {"nodes=2", "ntasks-per-node=4", "cpus-per-task=6", "gpus-per-node=4", "time=4:00:00", "partition=gpu",
        "account=lab", "mem=64G", "requeue", "open-mode=append", "signal=TERM@120"})
    EXPECT_TRUE(contains(text, std::string("#SBATCH --") + line + "\n")) << text;
  EXPECT_TRUE(contains(text, "restarts < 5")) << text;
  put_bytes(folder_ / "job.sh", text);
  EXPECT_EQ(std::system(("bash -n '" + (folder_ / "job.sh").string() + "'").c_str()), 0);
}

TEST_F(Submit, Ranks_AreTasksOfSrun) {
  EXPECT_EQ(run(script({"--nodes", "2"}), 0), 0);
  const Words words = srun_words();
  ASSERT_GT(words.size(), 5u);
  EXPECT_EQ(Words(words.begin(), words.begin() + 3),
            (Words{"--mpi=pmix", "--cpus-per-task=3", "--kill-on-bad-exit=1"}));
  EXPECT_TRUE(std::filesystem::path(words[3]).is_absolute()) << words[3];
  EXPECT_EQ(Words(words.begin() + 4, words.end()),
            (Words{"train", "digits", "--out", "/runs/a", "--resume", "auto"}));
}

TEST_F(Submit, RanksOfOneNode_AreLocal) {
  EXPECT_EQ(run(script({"--ranks-per-node", "4", "--cpus-per-rank", "2"}), 0), 0);
  const Words words = srun_words();
  EXPECT_EQ(words[0], "--ntasks=1");
  EXPECT_EQ(Words(words.end() - 4, words.end()), (Words{"--resume", "auto", "--ranks", "4"}));
}

TEST_F(Submit, WordsWithSpacesQuotesAndDollars_ArriveAsTheyAre) {
  const Words odd{"--pretrained", "/a b/it's \"$HOME\" `id` \\ *\n!", "--augment", "crop, flip 0.5"};
  const ProgramResult result =
      submit(Words{"submit", "--nodes", "2", "--", "train", "/my data", "--out", "/my runs/$USER's"} + odd);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(run(result.out, 0), 0);
  const Words words = srun_words();
  EXPECT_EQ(Words(words.begin() + 4, words.end()),
            (Words{"train", "/my data", "--out", "/my runs/$USER's"} + odd + Words{"--resume", "auto"}));
}

TEST_F(Submit, Resume_IsAddedOnce) {
  for (const Words& more : {Words{"--resume"}, Words{"--resume", "auto"}, Words{"--resume=auto"}}) {
    EXPECT_EQ(run(script({"--nodes", "2"}, more), 0), 0);
    const Words words = srun_words();
    EXPECT_EQ(Words(words.begin() + 8, words.end()), more);
  }
}

TEST_F(Submit, ExitStatus_DecidesWhetherTheJobStartsAgain) {
  const std::string text = script({"--nodes", "2", "--retries", "2"});
  for (const int status : {75, 137, 143}) {
    for (const int restarts : {0, 1}) {
      EXPECT_EQ(run(text, status, restarts), status);
      ASSERT_TRUE(requeued()) << status;
      EXPECT_EQ(text_of(folder_ / "scontrol.words"), "requeue 42\n");
    }
    EXPECT_EQ(run(text, status, 2), status);
    EXPECT_FALSE(requeued()) << status;
  }
  for (const int status : {0, 1, 2, 130}) {
    EXPECT_EQ(run(text, status), status);
    EXPECT_FALSE(requeued()) << status;
  }
}

TEST_F(Submit, NoRetries_NeverStartsAgain) {
  EXPECT_EQ(run(script({"--retries", "0"}), 75), 75);
  EXPECT_FALSE(requeued());
}

TEST_F(Submit, OutputFile_HasTheScript) {
  const ProgramResult result = submit(job({"-o", "job.sbatch"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "Start it with: sbatch job.sbatch\n");
  EXPECT_EQ(text_of(folder_ / "job.sbatch"), script({}));
}

TEST_F(Submit, Now_HandsTheScriptToSbatch) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", ((folder_ / "bin").string() + ":" + path).c_str(), 1);
  const ProgramResult good = submit(job({"--now"}));
  setenv("SBATCH_STATUS", "1", 1);
  const ProgramResult refused = submit(job({"--now"}));
  unsetenv("SBATCH_STATUS");
  setenv("PATH", "/nowhere", 1);
  const ProgramResult missing = submit(job({"--now"}));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.out, "Submitted batch job 7\n");
  EXPECT_EQ(text_of(folder_ / "sbatch.script"), script({}));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "sbatch ended with status 1")) << refused.err;
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(contains(missing.err, "cannot start sbatch")) << missing.err;
}

TEST_F(Submit, TrainingWithoutDashes_IsFound) {
  EXPECT_EQ(submit({"submit", "--nodes", "2", "train", "digits", "--out", "/runs/a"}).out,
            script({"--nodes", "2"}));
  EXPECT_EQ(submit({"submit", "--partition", "train", "train", "digits", "--out", "/runs/a"}).out,
            script({"--partition", "train"}));
}

// Each in one line and before anything is written.
TEST_F(Submit, BadWords_AreRefused) {
  const Words train{"submit", "-o", "job.sbatch", "--", "train", "digits"};
  const struct {
    Words words;
    const char* part;
  } cases[] = {
      {{"submit"}, "expected -- train DATA --out RUNDIR, got none"},
      {{"submit", "digits"}, "expected -- train DATA --out RUNDIR, got digits"},
      {{"submit", "--", "eval", "a"}, "expected -- train DATA --out RUNDIR, got eval"},
      {train, "expected --out RUNDIR"},
      {train + Words{"--resume", "auto"}, "--out"},
      {train + Words{"--out", "runs/a"},
       "expected --out with a path from the root, which all nodes see, got 'runs/a'"},
      {train + Words{"--out", "/a", "--epoch", "3"}, "unknown flag --epoch; did you mean --epochs?"},
      {train + Words{"--out", "/a", "--lr", "fast"}, "--lr"},
      {train + Words{"--out", "/a", "--ranks", "2"}, "--ranks-per-node"},
      {train + Words{"--out", "/a", "more"}, "more"},
      {train + Words{"--help"}, "expected -- train"},
      {job({"--time", "4h"}), "expected a time limit such as"},
      {job({"--mem", "lots"}), "expected a size such as"},
      {job({"--partition", "a b"}), "expected a name without spaces"},
      {job({"--nodes", "0"}), "--nodes"},
      {job({"--retries", "-1"}), "--retries"},
      {job({"--node", "2"}), "did you mean --nodes?"},
      {job({"-o", "job.sbatch", "--now"}), "--now"},
  };
  for (const auto& [words, part] : cases) {
    const ProgramResult result = submit(words);
    EXPECT_EQ(result.status, 2) << part;
    EXPECT_TRUE(contains(result.err, part)) << part << "\n" << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "job.sbatch"));
}

}  // namespace
}  // namespace tandem
