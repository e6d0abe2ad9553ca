// File helpers for tests: file contents as text, and a simulated full disk, a limit on memory.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/image/test_files.h"

namespace tandem {

inline std::string get_bytes(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

// Calls f while no file can grow beyond `bytes`.
template <class F>
void with_full_disk(rlim_t bytes, F&& f) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{bytes, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  f();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

// Runs `f` while the process can take this much more memory.
template <class F>
void with_memory_limit(rlim_t bytes, F&& f) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit small{pages * static_cast<rlim_t>(getpagesize()) + bytes, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
  f();
  setrlimit(RLIMIT_AS, &before);
}

}  // namespace tandem
