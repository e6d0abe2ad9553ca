// The CPUs that this process may run on. Where OpenMP binds its threads (OMP_PROC_BIND, OMP_PLACES), all that
// it uses count.
#pragma once

#include <vector>

namespace tandem {

using CpuList = std::vector<int>;  // numbers of CPUs

// Those of the affinity mask, in ascending order. Empty when the kernel does not say.
CpuList process_cpus();

// Those that it could be given: more than process_cpus() if it was bound when it was started.
CpuList permitted_cpus();

// The core of a CPU: several CPUs with simultaneous multithreading.
struct CpuCore {
  int package = 0;
  int first_cpu = 0;

  friend bool operator==(const CpuCore&, const CpuCore&) = default;
};
CpuCore core_of(int cpu);

// Moves all threads of this process to `cpus`, and with them what they start later. False when that is not
// possible, or OpenMP has bound them.
bool set_process_cpus(const CpuList& cpus);

// While it exists, what this thread starts runs on `cpus`.
class CpuScope {
 public:
  explicit CpuScope(const CpuList& cpus);
  ~CpuScope();
  CpuScope(const CpuScope&) = delete;
  CpuScope& operator=(const CpuScope&) = delete;

 private:
  CpuList before_;
};

}  // namespace tandem
