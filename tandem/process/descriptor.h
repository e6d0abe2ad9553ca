// Descriptor: the single owner of a file descriptor, closed with it.
#pragma once

#include <unistd.h>

#include <utility>

namespace tandem {

/// Owns a file descriptor and closes it. Move-only. A default-constructed one is empty (−1).
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes ownership of `fd`; a negative one makes an empty Descriptor.
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  /// The descriptor, which stays owned; −1 when empty.
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Closes the descriptor now.
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace tandem
