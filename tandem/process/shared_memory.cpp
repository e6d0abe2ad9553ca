// Checks every limit on shared memory, then allocates.
#include "tandem/process/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"

namespace tandem {
namespace {

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
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

struct Obstacle {
  std::string reason, remedy;
};

// Why `bytes` cannot be allocated; an empty reason when they can.
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
  const auto machine = available_host_bytes();
  if (bytes > machine) return {fmt::format("the machine has {} free", megabytes(machine)), "free memory"};
  const std::int64_t group = cgroup_free_bytes();
  if (bytes > group)
    return {fmt::format("the cgroup of this process has {} free", megabytes(group)),
            "raise its memory limit (sbatch --mem, docker --memory)"};
  return {};
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes, const std::string& what, const std::string& advice) {
  expect(bytes > 0);
  const Obstacle obstacle = obstacle_to(bytes);
  check(obstacle.reason.empty(), "[shared memory] {} needs {}, but {}: {} or {}", what, megabytes(bytes),
        obstacle.reason, advice, obstacle.remedy);
  file_ = Descriptor(::memfd_create("tandem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_) fail("[shared memory] cannot allocate {}: {}", what, errno_message(errno));
  if (::ftruncate(file_.get(), bytes) != 0)
    fail("[shared memory] {} needs {}, but: {}", what, megabytes(bytes), errno_message(errno));
  // A process that made the file shorter would end the others at their next access.
  ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* memory =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED)
    fail("[shared memory] {} needs {}, but it cannot be mapped ({}): {}", what, megabytes(bytes),
         errno_message(errno), advice);
  data_ = static_cast<std::byte*>(memory);
  size_ = static_cast<std::size_t>(bytes);
}

SharedMemory::SharedMemory(Descriptor file, Access access) : file_(std::move(file)) {
  struct stat info {};
  check(::fstat(file_.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0,
        "[shared memory] expected shared memory in descriptor {}, got something else", file_.get());
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  size_ = static_cast<std::size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size_, protection, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED)
    fail("[shared memory] cannot map {}: {}", megabytes(info.st_size), errno_message(errno));
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
