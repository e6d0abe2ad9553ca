#include "tandem/core/host_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

namespace tandem {
namespace {

std::atomic<int> sharing_processes{1};

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

// The number in a file, or `fallback` when the file is missing or holds no number ("max").
std::int64_t read_number(const std::filesystem::path& path, std::int64_t fallback) {
  std::int64_t number = 0;
  return std::ifstream(path) >> number ? number : fallback;
}

// The value of a "name value" line of memory.stat.
std::int64_t read_statistic(const std::filesystem::path& path, const std::string& wanted) {
  std::ifstream file(path);
  std::int64_t value = 0;
  for (std::string name; file >> name >> value;)
    if (name == wanted) return value;
  return 0;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;
};

// The minimum over a group and its ancestors, because every limit on the path applies.
std::int64_t min_free_bytes(const std::filesystem::path& root, std::filesystem::path group,
                            const CgroupFiles& files) {
  std::int64_t min_free = no_limit;
  while (true) {
    const std::filesystem::path folder = root / group.relative_path();
    const std::int64_t limit = read_number(folder / files.limit, no_limit);
    if (limit < no_limit / 2) {
      const std::int64_t used =
          read_number(folder / files.usage, 0) - read_statistic(folder / "memory.stat", files.reclaimable);
      min_free = std::min(min_free, std::max<std::int64_t>(limit - std::max<std::int64_t>(used, 0), 0));
    }
    if (!group.has_relative_path()) return min_free;
    group = group.parent_path();
  }
}

}  // namespace

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;  // in pages
  std::ifstream file("/proc/self/statm");
  return file >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void return_freed_memory() {
#ifdef M_MMAP_THRESHOLD  // glibc; setting it also stops its growth
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

void clear_freed_memory() {
#ifdef M_PERTURB
  mallopt(M_PERTURB, 0x55);
#endif
}

std::int64_t available_host_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::int64_t kib = 0;
  while (meminfo >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

std::int64_t cgroup_free_bytes(const std::string& membership, const std::filesystem::path& root) {
  std::int64_t min_free = no_limit;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" (v2), "4:memory:/a/b" (v1)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty())
      min_free =
          std::min(min_free, min_free_bytes(root, group, {"memory.max", "memory.current", "inactive_file"}));
    else if (controllers == "memory")
      min_free =
          std::min(min_free,
                   min_free_bytes(root / "memory", group,
                                  {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}));
  }
  return min_free;
}

std::int64_t cgroup_free_bytes() {
  std::ifstream file("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return cgroup_free_bytes(membership, "/sys/fs/cgroup");
}

std::int64_t free_host_bytes() {
  return std::min(available_host_bytes(), cgroup_free_bytes()) / sharing_processes.load();
}

void share_host_memory(int processes) {
  sharing_processes = std::max(processes, 1);
}

}  // namespace tandem
