// Runs the program on a terminal of its own, as a person would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <map>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace tandem {

class TerminalProgram {
 public:
  using Environment = std::map<std::string, std::string>;

  // In a session of its own it gets the signals of the terminal, but cannot be suspended: nobody could
  // continue it.
  TerminalProgram(const std::vector<std::string>& words, const std::filesystem::path& folder, int columns,
                  int rows, const Environment& environment = {}, bool own_session = true) {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    grantpt(terminal_);
    unlockpt(terminal_);
    const std::string name = ptsname(terminal_);
    program_side_ = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);  // keeps its settings after the end
    resize(columns, rows);
    tcgetattr(program_side_, &before_);
    pid_ = fork();
    if (pid_ == 0) {
      if (own_session)
        setsid();
      else
        setpgid(0, 0);
      const int own = open(name.c_str(), O_RDWR);  // becomes the terminal of the session
      dup2(own, 0);
      setenv("TERM", "xterm", 1);
      setenv("LC_ALL", "C.UTF-8", 1);
      unsetenv("NO_COLOR");
      for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
      exec_program(words, folder, own, own);
    }
  }
  ~TerminalProgram() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
    close(program_side_);
  }

  pid_t pid() const { return pid_; }
  void resize(int columns, int rows) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    ioctl(terminal_, TIOCSWINSZ, &size);
  }
  void press(const std::string& keys) {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Reads until the text has come after what was waited for before. Fails after half a minute.
  void wait_for(const std::string& text) {
    std::size_t found = 0;
    while ((found = output_.find(text, seen_)) == std::string::npos)
      if (!read_more(30'000)) {
        FAIL() << "no '" << text << "' in\n" << output_.substr(seen_);
      }
    seen_ = found + text.size();
  }
  // Everything that was written.
  const std::string& output() {
    while (read_more(0)) {
    }
    return output_;
  }

  int wait() {
    int status = 0;
    // What fills the terminal's buffer would keep the program from ending.
    while (waitpid(pid_, &status, WNOHANG) == 0) read_more(10);
    pid_ = -1;
    output();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // Whether lines and echo are as they were before.
  bool is_restored() const {
    termios now{};
    tcgetattr(program_side_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag;
  }

 private:
  bool read_more(int timeout_ms) {
    pollfd ready{terminal_, POLLIN, 0};
    if (poll(&ready, 1, timeout_ms) <= 0) return false;
    char bytes[4096];
    const ssize_t got = read(terminal_, bytes, sizeof bytes);
    if (got <= 0) return false;
    output_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  int terminal_ = -1, program_side_ = -1;
  termios before_{};
  pid_t pid_ = -1;
  std::string output_;
  std::size_t seen_ = 0;
};

}  // namespace tandem
