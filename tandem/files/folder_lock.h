// An exclusive lock on a folder across processes.
#pragma once

#include <filesystem>

namespace tandem {

// Waits for the lock of the folder and holds it until destruction. The kernel releases it when the process
// ends in any way. On file systems without locks nothing is held. Throws Error if the folder cannot be
// written.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace tandem
