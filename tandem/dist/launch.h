// How this process was started: alone, as a rank of `tandem train --ranks N`, or by srun or mpirun. Reads
// environment variables only; nothing is connected here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/dist/place.h"

namespace tandem {

using Environment = std::map<std::string, std::string, std::less<>>;

// This process's environment variables.
Environment process_environment();

enum class Launcher { none, local, slurm, open_mpi, mpich };
std::string_view name_of(Launcher launcher);  // "srun", "mpirun (Open MPI)", …

struct LaunchedRank {
  Launcher launcher = Launcher::none;
  Place place;          // local_rank, local_size and node as far as the launcher says; a group corrects them
  int segment_fd = -1;  // of Launcher::local: the descriptor of the shared memory between the ranks
};

// The rank that `environment` describes. Open MPI and MPICH come before SLURM: mpirun inside an allocation
// starts its daemons with srun, and ranks inherit the daemons' SLURM variables. A SLURM job without a step
// (salloc, a batch script) is one process. Error for values that cannot be, such as a rank of 4 of 4.
LaunchedRank detect_launch(const Environment& environment);

// The environment of local rank `rank`, as "NAME=value": that of its launcher, with the variables of ranks
// replaced. `segment_fd` is the descriptor the rank inherits.
std::vector<std::string> local_rank_environment(const Environment& environment, int rank, int ranks,
                                                int segment_fd);

}  // namespace tandem
