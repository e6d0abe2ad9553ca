// How many threads the process uses unless it is told otherwise.
#pragma once

namespace tandem {

/// The team_size() unless set_thread_count() sets it: OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else
/// usable_cpus(). May be more than usable_cpus(). Reads the environment at every call.
int default_thread_count();

}  // namespace tandem
