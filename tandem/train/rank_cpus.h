// How the ranks of a node share its CPUs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tandem/dist/group.h"
#include "tandem/dist/launch.h"
#include "tandem/process/cpu_affinity.h"

namespace tandem {

using CoreFunction = std::function<CpuCore(int cpu)>;

// The part of `cpus` of rank `rank` of `ranks`: CPUs of the same core and package stay together. All of them
// if there are fewer CPUs than ranks.
CpuList part_of_cpus(CpuList cpus, int ranks, int rank, const CoreFunction& core = core_of);

// The ranks of a node as they were started.
struct NodeCpus {
  std::vector<CpuList> masks;  // of each local rank, ascending
  int permitted = 0;           // CPUs that the ranks could be given
  int quota = 0;               // CPUs that they may use at a time
};

struct RankCpus {
  CpuList cpus;
  int usable = 1;  // CPUs for this rank, on average
};

// Ranks with the same mask share it out. Masks that differ are kept: the launcher has bound the ranks.
RankCpus share_cpus(const NodeCpus& node, int local_rank, const CoreFunction& core = core_of);

// The CPUs that the ranks use together, if each is bound to one core although there are others; else 0.
int cpus_of_bound_ranks(const NodeCpus& node, const CoreFunction& core = core_of);

// Gives this rank of srun or mpirun its part of the CPUs of its node. All ranks call it together, before they
// use more than one thread. Returns a warning if the ranks of this node are bound to too few CPUs, else "".
std::string take_share_of_cpus(Group& group, Launcher launcher);

}  // namespace tandem
