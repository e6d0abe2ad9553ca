#include "tandem/text/message.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace tandem {
namespace {

std::atomic<int> hidden_stderr = -1;  // the original standard error while messages are hidden

// Blocks SIGPIPE in this thread; one that was raised meanwhile is dropped.
class BlockedPipeSignal {
 public:
  BlockedPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending{};
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  ~BlockedPipeSignal() {
    const timespec now{};
    if (!was_pending_)
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  BlockedPipeSignal(const BlockedPipeSignal&) = delete;
  BlockedPipeSignal& operator=(const BlockedPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, previous_{};
  bool was_pending_ = false;
};

}  // namespace

void write_message(std::string_view text) noexcept {
  const int code = errno;
  const BlockedPipeSignal blocked;
  const int hidden = hidden_stderr;
  const int target = hidden >= 0 && text.starts_with("Warning:") ? hidden : STDERR_FILENO;
  while (!text.empty()) {
    const ssize_t written = ::write(target, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  errno = code;
}

void hide_messages() noexcept {
  if (hidden_stderr >= 0) return;
  std::fflush(stderr);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  const int original = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (original >= 0) ::dup2(null, STDERR_FILENO);
  hidden_stderr = original;
  ::close(null);
}

void restore_messages() noexcept {
  const int original = hidden_stderr.exchange(-1);
  if (original < 0) return;
  std::fflush(stderr);
  ::dup2(original, STDERR_FILENO);
  ::close(original);
}

void open_closed_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The lowest free number is used, which is this one. For the wrong direction: reads and writes then fail.
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)!::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

}  // namespace tandem
