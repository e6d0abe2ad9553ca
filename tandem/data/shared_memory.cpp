// What limits shared memory is asked first, then the memory is taken.
#include "tandem/data/shared_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/driver.h"

namespace tandem {
namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// The number in a file, `otherwise` where there is none ("max", or no such file).
std::int64_t number_in(const std::filesystem::path& path, std::int64_t otherwise) {
  std::int64_t number = 0;
  return std::ifstream(path) >> number ? number : otherwise;
}

// The value of a "name value" line of memory.stat.
std::int64_t statistic(const std::filesystem::path& path, const std::string& wanted) {
  std::ifstream file(path);
  std::int64_t value = 0;
  for (std::string name; file >> name >> value;)
    if (name == wanted) return value;
  return 0;
}

struct CgroupFiles {
  const char *limit, *usage, *reclaimable;
};

// The least over a group and those above it.
std::int64_t free_in_groups(const std::filesystem::path& root, std::filesystem::path group,
                            const CgroupFiles& files) {
  std::int64_t least = no_limit;
  while (true) {
    const std::filesystem::path folder = root / group.relative_path();
    const std::int64_t limit = number_in(folder / files.limit, no_limit);
    if (limit < no_limit / 2) {
      const std::int64_t used =
          number_in(folder / files.usage, 0) - statistic(folder / "memory.stat", files.reclaimable);
      least = std::min(least, std::max<std::int64_t>(limit - std::max<std::int64_t>(used, 0), 0));
    }
    if (!group.has_relative_path()) return least;
    group = group.parent_path();
  }
}

std::int64_t address_space_used() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

rlim_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Obstacle {
  std::string reason, remedy;
};

// Why so many bytes cannot be had, or an empty reason.
Obstacle obstacle_to(std::int64_t bytes) {
  if (const auto limit = limit_of(RLIMIT_FSIZE); limit != RLIM_INFINITY && static_cast<rlim_t>(bytes) > limit)
    return {fmt::format("files may have {}", megabytes(static_cast<std::int64_t>(limit))),
            fmt::format("raise the limit (ulimit -f {})", (bytes + 1023) / 1024)};
  const auto used = address_space_used();
  if (const auto limit = limit_of(RLIMIT_AS);
      limit != RLIM_INFINITY && static_cast<rlim_t>(used + bytes) > limit)
    return {fmt::format("this process uses {} of the {} it may", megabytes(used),
                        megabytes(static_cast<std::int64_t>(limit))),
            fmt::format("raise the limit (ulimit -v {})", (used + bytes + 1023) / 1024)};
  const auto machine = static_cast<std::int64_t>(available_memory<Backend::cpu>(cpu_device));
  if (bytes > machine) return {fmt::format("the machine has {} free", megabytes(machine)), "free memory"};
  const std::int64_t group = cgroup_free_bytes(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (bytes > group)
    return {fmt::format("the cgroup of this process has {} free", megabytes(group)),
            "raise its memory limit (sbatch --mem, docker --memory)"};
  return {};
}

}  // namespace

std::int64_t cgroup_free_bytes(const std::string& membership, const std::filesystem::path& root) {
  std::int64_t least = no_limit;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" (v2), "4:memory:/a/b" (v1)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, free_in_groups(root, group, {"memory.max", "memory.current", "inactive_file"}));
    else if (controllers == "memory")
      least = std::min(
          least, free_in_groups(root / "memory", group,
                                {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}));
  }
  return least;
}

SharedMemory::SharedMemory(std::int64_t bytes, const std::string& what, const std::string& advice) {
  expect(bytes > 0);
  const Obstacle obstacle = obstacle_to(bytes);
  check(obstacle.reason.empty(), "[loader] {} needs {} of shared memory, but {}: {} or {}", what,
        megabytes(bytes), obstacle.reason, advice, obstacle.remedy);
  file_ = Descriptor(::memfd_create("tandem", MFD_CLOEXEC));
  if (!file_) fail("[loader] cannot make shared memory for {}: {}", what, system_reason(errno));
  if (::ftruncate(file_.get(), bytes) != 0)
    fail("[loader] {} needs {} of shared memory, but: {}", what, megabytes(bytes), system_reason(errno));
  void* memory =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED)
    fail("[loader] {} needs {} of shared memory, but it cannot be mapped ({}): {}", what, megabytes(bytes),
         system_reason(errno), advice);
  data_ = static_cast<std::byte*>(memory);
  size_ = static_cast<std::size_t>(bytes);
}

SharedMemory::SharedMemory(Descriptor file, Access access) : file_(std::move(file)) {
  struct stat facts {};
  check(::fstat(file_.get(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0,
        "[loader] expected shared memory in descriptor {}, got something else", file_.get());
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  size_ = static_cast<std::size_t>(facts.st_size);
  void* memory = ::mmap(nullptr, size_, protection, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED)
    fail("[loader] cannot map {} of shared memory: {}", megabytes(facts.st_size), system_reason(errno));
  data_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tandem
