// Test programs that start themselves as child processes: with one of a few first words the program plays
// that role and runs no test (see test_program_test.cpp of the room).
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace tandem {

using Words = std::vector<std::string>;

// Starts this program; `fds` keep their numbers in it.
inline pid_t start_self(const Words& words, const std::vector<int>& fds) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : fds) posix_spawn_file_actions_adddup2(&actions, fd, fd);
  std::vector<char*> arguments{const_cast<char*>("test")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// The child's exit status, as waitpid() gives it.
inline int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace tandem
