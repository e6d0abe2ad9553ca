#include "tandem/train/slurm_job.h"

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The formats of sbatch's manual page.
TEST(SlurmJob, TimeLimit_HasSlurmsFormats) {
  EXPECT_EQ(slurm_seconds("90"), 90 * 60);
  EXPECT_EQ(slurm_seconds("90:15"), 90 * 60 + 15);
  EXPECT_EQ(slurm_seconds("4:00:00"), 4 * 3600);
  EXPECT_EQ(slurm_seconds("2-6"), (2 * 24 + 6) * 3600);
  EXPECT_EQ(slurm_seconds("2-6:30"), (2 * 24 + 6) * 3600 + 30 * 60);
  EXPECT_EQ(slurm_seconds("2-6:30:05"), (2 * 24 + 6) * 3600 + 30 * 60 + 5);
  for (const char* text : {"", "0", "0:00", "-5", "1-", "4h", "1:2:3:4", "1:-2", "1 2", "99999999999"})
    EXPECT_THROW(slurm_seconds(text), Error) << text;
}

TEST(SlurmJob, SizesAndNames_AreChecked) {
  for (const char* size : {"0", "500M", "16G", "1T", "64000"})
    EXPECT_NO_THROW(check_slurm_memory(size)) << size;
  for (const char* size : {"", "G", "16GB", "1.5G", "-1G", "16 G"})
    EXPECT_THROW(check_slurm_memory(size), Error) << size;
  EXPECT_NO_THROW(check_slurm_name("gpu_a100,gpu-h100"));
  for (const char* name : {"", "a b", "a\nb", "a'b", "\"a\"", "a\\b"})
    EXPECT_THROW(check_slurm_name(name), Error) << name;
}

TEST(SlurmJob, SeveralNodes_HaveOneTaskPerRank) {
  const std::string script =
      slurm_script({.nodes = 2, .ranks_per_node = 4, .cpus_per_rank = 3, .gpus_per_rank = 1}, {"tandem"});
  for (const char* line :
       {"--nodes=2\n", "--ntasks-per-node=4\n", "--cpus-per-task=3\n", "--gpus-per-node=4\n"})
    EXPECT_TRUE(contains(script, std::string("#SBATCH ") + line)) << script;
  EXPECT_TRUE(
      contains(script, "srun --mpi=pmix --cpus-per-task=\"$SLURM_CPUS_PER_TASK\" --kill-on-bad-exit=1"))
      << script;
}

TEST(SlurmJob, OneNode_HasOneTaskWithTheCpusOfAllRanks) {
  const std::string script = slurm_script({.ranks_per_node = 4, .cpus_per_rank = 3}, {"tandem"});
  for (const char* line : {"--nodes=1\n", "--ntasks-per-node=1\n", "--cpus-per-task=12\n"})
    EXPECT_TRUE(contains(script, std::string("#SBATCH ") + line)) << script;
  EXPECT_FALSE(contains(script, "--mpi")) << script;
  EXPECT_FALSE(contains(script, "gpus")) << script;
}

TEST(SlurmJob, ShortJob_HasAShortMargin) {
  EXPECT_TRUE(contains(slurm_script({}, {}), "--signal=TERM@120\n"));
  EXPECT_TRUE(contains(slurm_script({.time = "1-0"}, {}), "--signal=TERM@120\n"));
  EXPECT_TRUE(contains(slurm_script({.time = "5"}, {}), "--signal=TERM@30\n"));
}

}  // namespace
}  // namespace tandem
