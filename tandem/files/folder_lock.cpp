#include "tandem/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

std::filesystem::path lock_path(const std::filesystem::path& folder) {
  return folder / ".lock";
}

int open_lock(const std::filesystem::path& folder) {
  const int file = ::open(lock_path(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const int code = errno;
  check(file >= 0, "[folder_lock] cannot write to {}: {}", folder.string(),
        std::generic_category().message(code));
  return file;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("?");
}

// A failure is ignored: the text is only for messages.
void write_holder(int file) {
  const std::string text = fmt::format("{} {}\n", ::getpid(), host_name());
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, text.data(), text.size(), 0);
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(open_lock(folder)) {
  while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
  write_holder(file_);
}

std::optional<FolderLock> FolderLock::try_lock(const std::filesystem::path& folder) {
  FolderLock lock;
  lock.file_ = open_lock(folder);
  int failed = 0;
  while ((failed = ::flock(lock.file_, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {
  }
  if (failed != 0 && errno == EWOULDBLOCK) return std::nullopt;
  write_holder(lock.file_);
  return lock;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

std::string last_locked_by(const std::filesystem::path& folder) {
  long process = 0;
  std::string host;
  if (!(std::ifstream(lock_path(folder)) >> process >> host) || process <= 0) return "another process";
  return host == host_name() ? fmt::format("process {}", process)
                             : fmt::format("process {} on {}", process, host);
}

}  // namespace tandem
