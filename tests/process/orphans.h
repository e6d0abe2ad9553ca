// Processes that outlive the one that started them.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tandem/process/descriptor.h"

namespace tandem {

// While it exists, orphans become children of this process instead of init's.
class Orphans {
 public:
  Orphans() : before_(children()) { EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  ~Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // How many processes have become children of this one and do not end. They are killed.
  int count() const {
    int living = 0;
    for (const pid_t pid : children()) {
      if (std::ranges::find(before_, pid) != before_.end()) continue;
      const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};  // readable when it has ended
      constexpr int timeout_ms = 5000;                                  // one that was killed needs a moment
      if (::poll(&end, 1, timeout_ms) != 1) ++living, ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    return living;
  }

 private:
  // Of all threads of this process.
  static std::vector<pid_t> children() {
    std::vector<pid_t> all;
    DIR* const folder = ::opendir("/proc");
    while (const dirent* const entry = ::readdir(folder)) {
      const pid_t pid = std::atoi(entry->d_name);
      if (pid <= 0) continue;
      std::string text;
      std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), text, '\0');
      const std::size_t name_end = text.rfind(") ");  // then the state and the parent
      if (name_end != std::string::npos && std::atoi(text.c_str() + name_end + 4) == ::getpid())
        all.push_back(pid);
    }
    ::closedir(folder);
    return all;
  }

  std::vector<pid_t> before_;
};

}  // namespace tandem
