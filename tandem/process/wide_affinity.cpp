// OpenMP's places cover the CPUs this process was started with.
#include "tandem/process/wide_affinity.h"

#include <omp.h>

#include <vector>

namespace tandem {

WideAffinity::WideAffinity() {
  const int places = omp_get_num_places();  // 0: OpenMP binds no threads
  if (places <= 0 || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  cpu_set_t all = before_;
  for (int place = 0; place < places; ++place) {
    std::vector<int> cpus(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cpus.data());
    for (const int cpu : cpus)
      if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &all);
  }
  changed_ = sched_setaffinity(0, sizeof(all), &all) == 0;
}

WideAffinity::~WideAffinity() {
  if (changed_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace tandem
