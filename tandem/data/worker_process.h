// WorkerProcess: a program started by exec, never by a fork that goes on in this process's code (which may
// have threads and a GPU). It is killed and reaped with its owner.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tandem/data/descriptor.h"

namespace tandem {

// Set in a worker's environment: a program that was started as one and does not know it must not start
// others.
inline constexpr const char* worker_mark = "TANDEM_WORKER";

class WorkerProcess {
 public:
  WorkerProcess() = default;
  // Starts `program` with those words, in a process group of its own (the terminal's Ctrl-C is the trainer's
  // affair), without standard input and output; `fds` keep their numbers, all else is closed. Error when it
  // cannot be started.
  WorkerProcess(const std::string& program, const std::vector<std::string>& words,
                const std::vector<int>& fds);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends; −1 where the system has no such thing, then ended() is to be
  // asked now and then.
  int end_fd() const { return end_.get(); }
  void kill() const;
  // How it ended ("was ended by signal 9"), once it has; does not wait.
  std::optional<std::string> ended();

 private:
  std::string program_;
  pid_t pid_ = -1;
  Descriptor end_;
};

}  // namespace tandem
