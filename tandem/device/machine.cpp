#include "tandem/device/machine.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// The value of the first "name : value" line of /proc/cpuinfo.
std::string cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

// /proc/cpuinfo of Arm CPUs has part numbers instead of a name.
std::string cpu_model() {
  if (const std::string name = cpuinfo("model name"); !name.empty()) return name;
  static const std::map<std::string, std::string> parts = {
      {"0xd03", "Cortex-A53"},  {"0xd08", "Cortex-A72"},   {"0xd0b", "Cortex-A76"},  {"0xd0c", "Neoverse-N1"},
      {"0xd40", "Neoverse-V1"}, {"0xd49", "Neoverse-N2"},  {"0xd4f", "Neoverse-V2"}, {"0xd8e", "Neoverse-N3"},
      {"0xd84", "Neoverse-V3"}, {"0xd83", "Neoverse-V3AE"}};
  const std::string part = cpuinfo("CPU part");
  const auto found = parts.find(part);
  if (cpuinfo("CPU implementer") == "0x41" && found != parts.end()) return found->second;
  return "Arm CPU, part " + (part.empty() ? "unknown" : part);
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  CpuFacts& cpu = facts.cpu;
#if defined(__aarch64__)
  cpu.architecture = "aarch64";
#else
  cpu.architecture = "x86-64";
#endif
  cpu.model = cpu_model();
  cpu.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu.usable_cores = usable_cpus();
  cpu.simd = name_of(simd_level());
  cpu.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if constexpr (has_cuda) facts.cuda = backend_facts<Backend::cuda>();
  facts.cuda.problem = why_no_cuda();
  return facts;
}

}  // namespace tandem
