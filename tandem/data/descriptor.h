// Descriptor: the one owner of a file descriptor; what the pipes, shared memory and worker processes hold.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Why a call failed and, where the cause is a limit, what to do about it. For fail(), not for check(), whose
// arguments may be computed before the call they stand beside.
inline std::string system_reason(int error) {
  std::string reason = std::generic_category().message(error);
  if (error == EMFILE) reason += ": raise the limit (ulimit -n)";
  return reason;
}

}  // namespace tandem
