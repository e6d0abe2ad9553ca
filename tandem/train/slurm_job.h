// SlurmJob: a batch script for SLURM that trains, saves before the job ends, and starts again where that
// helps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct SlurmJob {
  int nodes = 1, ranks_per_node = 1, cpus_per_rank = 1;
  int gpus_per_rank = 0;
  std::string time, partition, account, memory;  // as sbatch has them; empty: the cluster's default
  int retries = 3;                               // how often the job starts again

  bool is_one_process() const { return nodes == 1; }  // with local ranks, which need no MPI
};

// The seconds of a time limit: "90" (minutes), "90:00", "1:30:00", "1-6", "1-6:30", "1-6:30:00". Error for
// other text.
std::int64_t slurm_seconds(const std::string& time);

// Error unless it is a size as sbatch has it: "16G", "512M".
void check_slurm_memory(const std::string& size);

// Error unless it can stand in a line of the script: no spaces, quotes or line ends.
void check_slurm_name(const std::string& name);

// `command` is the program and its words. It runs once per rank, or once on the only node. Exit status 75 (a
// rank was lost), 137 (one was killed) and 143 (stopped and saved) put the job back into the queue, at most
// `retries` times; any other one ends it.
std::string slurm_script(const SlurmJob& job, const std::vector<std::string>& command);

}  // namespace tandem
