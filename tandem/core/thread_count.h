// How many threads the process uses unless it is told otherwise.
#pragma once

namespace tandem {

/// The team_size() unless set_thread_count() sets it: OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else
/// usable_cpus(). May be more than usable_cpus(). Reads the environment at every call.
int default_thread_count();

// Whether set_thread_count(), OMP_NUM_THREADS or SLURM_CPUS_PER_TASK says how many threads there are.
bool is_thread_count_given();

// The CPUs that the quota of this process's cgroup amounts to; very many without one.
int cpu_quota();

// What usable_cpus() says from now on, and with it default_thread_count() and team_size(): for a process that
// shares its CPUs with others. Before work is divided by these numbers.
void set_usable_cpus(int count);

}  // namespace tandem
