// The test program is also the program its tests start: with one of these words first it plays that part and
// runs no test. What they share: starting itself with descriptors handed over, and waiting for it.
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

int queue_writer(const Words& words);   // pipe_queue_test.cpp
int loader_worker(const Words& words);  // loader_process_test.cpp
int loader_parent(const Words& words);  // loader_process_test.cpp
int bound_loader(const Words& words);   // loader_process_test.cpp

// Starts this program; `fds` keep their numbers in it.
inline pid_t start_self(const Words& words, const std::vector<int>& fds) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : fds) posix_spawn_file_actions_adddup2(&actions, fd, fd);
  std::vector<char*> arguments{const_cast<char*>("data_test")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// What waitpid() says of a child's end.
inline int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace tandem
