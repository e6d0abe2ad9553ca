// A program that runs while the test does something else.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/apps/program.h"

namespace tandem {

class RunningProgram {
 public:
  RunningProgram(const std::vector<std::string>& words, const std::filesystem::path& folder) {
    const int out = open((streams_ / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int err = open((streams_ / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_ = fork();
    if (pid_ == 0) exec_program(words, folder, out, err);
    close(out);
    close(err);
  }
  ~RunningProgram() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }
  std::string err() const { return text_of(streams_ / "err"); }
  std::string out() const { return text_of(streams_ / "out"); }

  // The processes it has started, in that order.
  std::vector<pid_t> children() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children");
    std::vector<pid_t> all;
    for (pid_t child = 0; file >> child;) all.push_back(child);
    return all;
  }

  // Waits until `file` is there or the program has ended.
  void wait_for(const std::filesystem::path& file) {
    while (!std::filesystem::exists(file) && !has_ended())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(std::filesystem::exists(file)) << err();
  }

  // Waits until `file` is replaced.
  void wait_for_new(const std::filesystem::path& file) {
    const auto written = [&] {
      std::error_code missing;
      return std::filesystem::last_write_time(file, missing);
    };
    const auto before = written();
    while (written() == before && !has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_NE(written(), before) << err();
  }

  // Whether it has not taken a signal yet that was sent to it.
  bool has_pending(int signal) const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
    for (std::string name, value; file >> name && std::getline(file, value);)
      if (name == "ShdPnd:") return (std::stoull(value, nullptr, 16) >> (signal - 1) & 1) != 0;
    return false;
  }

  int wait() {
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) status_ = status;
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }

 private:
  bool has_ended() {
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
      pid_ = -1;
    }
    return pid_ < 0;
  }

  TempFolder streams_;
  pid_t pid_ = -1;
  int status_ = 0;
};

inline bool is_gone(pid_t pid) {
  return kill(pid, 0) != 0;
}

}  // namespace tandem
