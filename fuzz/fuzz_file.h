// The input as a file in memory, for functions that read one.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz/fuzz.h"

namespace tandem {

// The same file for every input.
inline const std::filesystem::path& fuzz_file(std::string_view contents) {
  static const int descriptor = ::memfd_create("input", MFD_CLOEXEC);
  static const std::filesystem::path path = "/proc/self/fd/" + std::to_string(descriptor);
  require(::ftruncate(descriptor, static_cast<off_t>(contents.size())) == 0);
  require(::pwrite(descriptor, contents.data(), contents.size(), 0) == static_cast<ssize_t>(contents.size()));
  return path;
}

}  // namespace tandem
