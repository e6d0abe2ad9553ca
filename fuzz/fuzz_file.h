// Files in memory, for functions that read or write one.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz/fuzz.h"

namespace tandem {

// The input: the same file for every input.
inline const std::filesystem::path& fuzz_file(std::string_view contents) {
  static const int descriptor = ::memfd_create("input", MFD_CLOEXEC);
  static const std::filesystem::path path = "/proc/self/fd/" + std::to_string(descriptor);
  require(::ftruncate(descriptor, static_cast<off_t>(contents.size())) == 0);
  require(::pwrite(descriptor, contents.data(), contents.size(), 0) == static_cast<ssize_t>(contents.size()));
  return path;
}

// A name for a file that is removed again.
class OutputFile {
 public:
  explicit OutputFile(const char* name)
      : path_((std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                         : std::filesystem::temp_directory_path()) /
              ("tandem-fuzz-" + std::to_string(::getpid()) + name)) {}
  ~OutputFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tandem
