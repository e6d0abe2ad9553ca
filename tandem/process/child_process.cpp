// pidfd and waitpid.
#include "tandem/process/child_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
                           LaunchOptions options) {
  options.own_group = true;
  const LaunchResult result = launch(program, arguments, options);
  check(result.error == 0, "[process] cannot start {}: {}", program, errno_message(result.error));
  pid_ = result.pid;
#ifdef SYS_pidfd_open
  // The child is not reaped yet, so its pid cannot have been reused.
  end_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (end_) ::fcntl(end_.get(), F_SETFD, FD_CLOEXEC);
#endif
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  return *this;
}

void ChildProcess::kill() const {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

bool ChildProcess::stop() const {
  if (pid_ < 0 || ::kill(-pid_, SIGSTOP) != 0) return false;
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
    if (errno != EINTR) return false;
  if (info.si_code != CLD_STOPPED) return false;
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);  // reported once per stop
  return true;
}

void ChildProcess::resume() const {
  if (pid_ > 0) ::kill(-pid_, SIGCONT);
}

std::optional<int> ChildProcess::ended_with() {
  if (pid_ < 0) return -1;
  siginfo_t info{};
  const int error = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (error == 0 ? info.si_pid == 0 : errno == EINTR) return std::nullopt;
  // Before it is reaped: afterwards the number of its group may be another's.
  if (error == 0) kill();
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  pid_ = -1;  // reaped here, or (ECHILD) by the kernel because this process ignores SIGCHLD
  end_.reset();
  return found > 0 ? status : -1;
}

std::optional<std::string> ChildProcess::ended() {
  const std::optional<int> status = ended_with();
  if (!status) return std::nullopt;
  return *status >= 0 ? describe_exit(*status) : "is gone";
}

}  // namespace tandem
