// Tests that start processes and read what they write to standard error.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tandem/dist/launch.h"
#include "tandem/process/child_process.h"
#include "tandem/process/descriptor.h"

namespace tandem {

class ProcessTest : public testing::Test {
 protected:
  // The descriptor for the standard error of processes.
  Descriptor open_output() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    output_ = Descriptor(ends[0]);
    return Descriptor(ends[1]);
  }

  // Reads what the processes write until a line with `last` is there; without it, until all have ended.
  void read_until(const std::string& last) {
    char bytes[4096];
    while (last.empty() || text_.find('\n', text_.find(last)) == std::string::npos) {
      const ssize_t count = read(output_.get(), bytes, sizeof(bytes));
      if (count <= 0) break;
      text_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  static std::string end_of(ChildProcess& process) {
    while (true) {
      if (const auto how = process.ended()) return *how;
      pollfd end{process.end_fd(), POLLIN, 0};
      poll(&end, 1, 10);
    }
  }

  // The lines of the ranks, each once, without "ready".
  std::vector<std::string> sentences() const {
    std::vector<std::string> lines;
    std::istringstream text(text_);
    for (std::string line; std::getline(text, line);)
      if (line.rfind("ready", 0) != 0) lines.push_back(line);
    std::ranges::sort(lines);
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
  }

  static std::string describe(int rank, pid_t pid) {
    return "rank " + std::to_string(rank) + " (host " + detect_launch({}).place.host + ", process " +
           std::to_string(pid) + ")";
  }

  Descriptor output_;
  std::string text_;
};

}  // namespace tandem
