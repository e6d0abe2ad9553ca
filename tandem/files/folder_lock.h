// An exclusive lock on a folder across processes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem {

// Held until destruction. The kernel releases it when the process ends in any way. On file systems without
// locks nothing is held. The file .lock in the folder names the process that locked it last.
class FolderLock {
 public:
  // Waits for the lock. Throws Error if the folder cannot be written.
  explicit FolderLock(const std::filesystem::path& folder);
  // Does not wait: nullopt if the lock is held, by another process or by this one.
  static std::optional<FolderLock> try_lock(const std::filesystem::path& folder);

  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  FolderLock() = default;

  int file_ = -1;
};

// The process that locked a folder last. It may have ended.
struct LockHolder {
  long process = 0;
  std::string host;
  bool is_here = false;  // on this host
};

// Nullopt if the folder was never locked, or that is not known. Takes no lock.
std::optional<LockHolder> last_lock_holder(const std::filesystem::path& folder);

// Whether the process exists and has not started after the folder was locked. Only for one on this host.
bool is_alive(const LockHolder& holder, const std::filesystem::path& folder);

// Who locked the folder last: "process 4711", with its host if it is another one; "another process" if that
// is not known.
std::string last_locked_by(const std::filesystem::path& folder);

}  // namespace tandem
