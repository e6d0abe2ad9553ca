#include "tandem/dist/process_end.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace tandem {

ProcessEnd::ProcessEnd(pid_t pid) : pid_(pid) {
#ifdef SYS_pidfd_open
  end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec
#endif
}

bool ProcessEnd::has_ended() const {
  if (pid_ <= 0) return false;
  if (!end_) return ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd poll{end_.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

std::string process_domain() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return boot.empty() || space.empty() ? "" : boot + " " + space;
}

}  // namespace tandem
