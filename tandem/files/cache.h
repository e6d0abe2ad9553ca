// Where downloaded files live, and what it takes to fill such a folder safely.
#pragma once

#include <filesystem>

namespace tandem {

// $TANDEM_CACHE, else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem. It need not exist yet.
std::filesystem::path cache_directory();

// While it lives, no other process holds the lock of that folder; waits for it. The kernel lets go of it when
// the process ends in any way. Where the file system knows no locks nothing is held.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

// A new folder among the system's temporary ones, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tandem
