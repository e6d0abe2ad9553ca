// ProcessEnd: whether another process of this machine has ended.
#pragma once

#include <sys/types.h>

#include <string>

#include "tandem/process/descriptor.h"

namespace tandem {

class ProcessEnd {
 public:
  ProcessEnd() = default;  // no process: it does not end
  explicit ProcessEnd(pid_t pid);

  pid_t pid() const { return pid_; }
  // True also for a process that its parent has not reaped.
  bool has_ended() const;

 private:
  pid_t pid_ = 0;
  Descriptor end_;  // becomes readable when the process ends
};

// Names what process numbers refer to: this machine since it was started, and its process namespace. Empty
// where that is not known.
std::string process_domain();

}  // namespace tandem
