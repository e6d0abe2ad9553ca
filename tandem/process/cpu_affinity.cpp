#include "tandem/process/cpu_affinity.h"

#include <omp.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tandem/process/wide_affinity.h"

namespace tandem {
namespace {

cpu_set_t to_mask(const CpuList& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &mask);
  return mask;
}

// `thread` 0: the calling one.
CpuList cpus_of_thread(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CpuList cpus;
  if (::sched_getaffinity(thread, sizeof(mask), &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &mask)) cpus.push_back(cpu);
  return cpus;
}

bool set_cpus_of_thread(pid_t thread, const CpuList& cpus) {
  const cpu_set_t mask = to_mask(cpus);
  return ::sched_setaffinity(thread, sizeof(mask), &mask) == 0;
}

// The first number of a file, such as that of "0,16" or "0-1".
int first_number(const std::string& file, int otherwise) {
  int number = 0;
  return std::ifstream(file) >> number ? number : otherwise;
}

}  // namespace

CpuList process_cpus() {
  const WideAffinity wide;
  return cpus_of_thread(0);
}

// The kernel leaves out of a mask what the cpuset does not have.
CpuList permitted_cpus() {
  CpuList cpus;
  std::thread([&] {
    CpuList all(CPU_SETSIZE);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) all[static_cast<std::size_t>(cpu)] = cpu;
    set_cpus_of_thread(0, all);
    cpus = cpus_of_thread(0);
  }).join();
  return cpus;
}

CpuCore core_of(int cpu) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  return {.package = first_number(folder + "physical_package_id", 0),
          .first_cpu = first_number(folder + "thread_siblings_list", cpu)};
}

bool set_process_cpus(const CpuList& cpus) {
  if (omp_get_num_places() > 0) return false;
  bool all = true;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto thread = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    all = set_cpus_of_thread(thread, cpus) && all;
  }
  return all && !error;
}

CpuScope::CpuScope(const CpuList& cpus) : before_(cpus_of_thread(0)) {
  if (!set_cpus_of_thread(0, cpus)) before_.clear();
}

CpuScope::~CpuScope() {
  if (!before_.empty()) set_cpus_of_thread(0, before_);
}

}  // namespace tandem
