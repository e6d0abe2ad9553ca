// ChildProcess: a running program that is killed and reaped with its owner. What it has started ends with it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tandem/process/descriptor.h"
#include "tandem/process/launch.h"

namespace tandem {

class ChildProcess {
 public:
  ChildProcess() = default;
  // Starts `program` without standard input, in a process group of its own, so that Ctrl-C in the
  // terminal reaches this process only. `arguments` begins with argv[0]; options.fds keep their numbers, all
  // other descriptors are expected to be close-on-exec. Error when the program cannot be started.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments, LaunchOptions options);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends. −1 where the kernel has no pidfd, or none was left: then ended()
  // must be called from time to time.
  int end_fd() const { return end_.get(); }
  // Kills the process and what it has started, unless that has left its process group.
  void kill() const;
  // Stops the process and what it has started; returns when none of its threads runs any more. False: it has
  // ended.
  bool stop() const;
  // Lets a stopped process run.
  void resume() const;
  // How the process ended ("was ended by signal 9"), once it has; does not wait. What it has left behind in
  // its process group is killed.
  std::optional<std::string> ended();
  // The same as waitpid() gives it; −1 when the kernel has not kept it.
  std::optional<int> ended_with();

 private:
  pid_t pid_ = -1;
  Descriptor end_;
};

}  // namespace tandem
