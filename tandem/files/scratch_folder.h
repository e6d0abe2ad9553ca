// A temporary folder that is removed with its contents.
#pragma once

#include <filesystem>

namespace tandem {

// A new folder in the system's temporary directory. Throws Error if it cannot be created.
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
