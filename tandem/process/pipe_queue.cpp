// Frames in, messages out; the header explains the locking.
#include "tandem/process/pipe_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>

#include "tandem/core/check.h"

namespace tandem {

struct PipeQueue::Lock {
  pthread_mutex_t mutex;
};

namespace {

struct FrameHeader {
  std::uint32_t bytes;  // that follow
  std::uint32_t kind;
};

// Bits of FrameHeader::kind. 0: a short message in one frame.
constexpr std::uint32_t part = 1, first = 2, last = 4;
constexpr std::size_t max_payload = PIPE_BUF - sizeof(FrameHeader);
constexpr std::size_t chunk_bytes = std::size_t{16} * PIPE_BUF;
constexpr std::size_t lock_bytes = sizeof(pthread_mutex_t);

// While it lives, writing to a pipe without a reader gives EPIPE and no signal. SIGPIPE goes to the writing
// thread, so it is blocked there; a pending one is consumed before the mask is restored.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    if (pending_) {
      const timespec now{};
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

  void set_pending() { pending_ = true; }

 private:
  sigset_t pipe_{}, before_{};
  bool pending_ = false;
};

void write_frame(int fd, std::span<const std::byte> payload, std::uint32_t kind, WithoutSigpipe& masked) {
  std::byte frame[PIPE_BUF];
  const FrameHeader header{static_cast<std::uint32_t>(payload.size()), kind};
  std::memcpy(frame, &header, sizeof(header));
  if (!payload.empty()) std::memcpy(frame + sizeof(header), payload.data(), payload.size());
  const std::size_t size = sizeof(header) + payload.size();
  ssize_t written;
  do written = ::write(fd, frame, size);
  while (written < 0 && errno == EINTR);
  if (written < 0) {
    if (errno == EPIPE) masked.set_pending();
    fail("[queue] cannot put a message: {}", errno == EPIPE ? "the reader is gone" : errno_message(errno));
  }
  expect(written == static_cast<ssize_t>(size));
}

// Holds the robust mutex, made consistent when its last owner died with it.
class RobustLock {
 public:
  explicit RobustLock(pthread_mutex_t& mutex) : mutex_(mutex) {
    const int result = pthread_mutex_lock(&mutex_);
    if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    check(result == 0 || result == EOWNERDEAD, "[queue] cannot lock the queue: {}", errno_message(result));
  }
  ~RobustLock() { pthread_mutex_unlock(&mutex_); }
  RobustLock(const RobustLock&) = delete;
  RobustLock& operator=(const RobustLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

PipeQueue::PipeQueue() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) fail("[queue] cannot make a pipe: {}", errno_message(errno));
  read_ = Descriptor(fds[0]);
  write_ = Descriptor(fds[1]);
  lock_file_ = Descriptor(::memfd_create("tandem-queue", MFD_CLOEXEC));
  if (!lock_file_) fail("[queue] cannot make the lock: {}", errno_message(errno));
  if (::ftruncate(lock_file_.get(), lock_bytes) != 0)
    fail("[queue] cannot make the lock: {}", errno_message(errno));
  map_lock();
  pthread_mutexattr_t attributes;
  expect(pthread_mutexattr_init(&attributes) == 0);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  expect(pthread_mutex_init(&lock_->mutex, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
  ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
}

PipeQueue::PipeQueue(const PipeQueueEnds& given)
    : read_(given.read), write_(given.write), lock_file_(given.lock) {
  for (const int fd : {given.read, given.write, given.lock})
    check(fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0, "[queue] expected an open descriptor, got {}", fd);
  if (read_) ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
  if (!write_) return;
  struct stat info {};
  check(::fstat(lock_file_.get(), &info) == 0 && info.st_size >= static_cast<off_t>(lock_bytes),
        "[queue] expected the queue's lock in descriptor {}, got something else", given.lock);
  map_lock();
}

// The mutex is never destroyed: another process may still use it, and it owns nothing but its memory.
PipeQueue::~PipeQueue() {
  if (lock_) ::munmap(lock_, lock_bytes);
}

PipeQueue::PipeQueue(PipeQueue&& other) noexcept : PipeQueue(PipeQueueEnds{}) {
  *this = std::move(other);
}

PipeQueue& PipeQueue::operator=(PipeQueue&& other) noexcept {
  std::swap(read_, other.read_);
  std::swap(write_, other.write_);
  std::swap(lock_file_, other.lock_file_);
  std::swap(lock_, other.lock_);
  std::swap(chunk_, other.chunk_);
  std::swap(cut_, other.cut_);
  std::swap(unfinished_, other.unfinished_);
  std::swap(in_long_, other.in_long_);
  std::swap(waiting_, other.waiting_);
  std::swap(ended_, other.ended_);
  return *this;
}

void PipeQueue::map_lock() {
  void* memory = ::mmap(nullptr, lock_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, lock_file_.get(), 0);
  if (memory == MAP_FAILED) fail("[queue] cannot map the lock: {}", errno_message(errno));
  lock_ = static_cast<Lock*>(memory);
}

void PipeQueue::put(std::span<const std::byte> message) const {
  expect(static_cast<bool>(write_));
  if (message.size() > max_payload) return put_long(message);
  WithoutSigpipe masked;
  write_frame(write_.get(), message, 0, masked);
}

void PipeQueue::put_long(std::span<const std::byte> message) const {
  WithoutSigpipe masked;
  const RobustLock holding(lock_->mutex);
  std::uint32_t kind = part | first;
  while (!message.empty()) {
    const std::size_t bytes = std::min(message.size(), max_payload);
    if (bytes == message.size()) kind |= last;
    write_frame(write_.get(), message.first(bytes), kind, masked);
    message = message.subspan(bytes);
    kind = part;
  }
}

std::optional<Message> PipeQueue::get() {
  while (waiting_.empty() && !ended_) {
    drain();
    if (waiting_.empty() && !ended_) wait_readable(std::nullopt);
  }
  return get(std::chrono::milliseconds(0));
}

std::optional<Message> PipeQueue::get(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (waiting_.empty() && !ended_) {
    drain();
    if (waiting_.empty() && !ended_ && !wait_readable(deadline)) break;
  }
  if (waiting_.empty()) return std::nullopt;
  std::optional<Message> message(std::move(waiting_.front()));
  waiting_.pop_front();
  return message;
}

std::int64_t PipeQueue::length() {
  while (!ended_ && drain()) {
  }
  return static_cast<std::int64_t>(waiting_.size());
}

// Waits until there is something to read or no writer is left; false at the deadline.
bool PipeQueue::wait_readable(std::optional<std::chrono::steady_clock::time_point> deadline) const {
  while (true) {
    int wait_ms = -1;
    if (deadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
    }
    pollfd wanted{read_.get(), POLLIN, 0};
    const int found = ::poll(&wanted, 1, wait_ms);
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) fail("[queue] cannot wait for messages: {}", errno_message(errno));
    if (found == 0 && deadline && wait_ms == 0) return false;
  }
}

// One read that does not block; whether it returned bytes.
bool PipeQueue::drain() {
  expect(static_cast<bool>(read_));
  chunk_.resize(PIPE_BUF + chunk_bytes);
  ssize_t got;
  do got = ::read(read_.get(), chunk_.data() + cut_, chunk_bytes);
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got < 0) fail("[queue] cannot read: {}", errno_message(errno));
  if (got == 0) {
    ended_ = true;
    return false;
  }
  parse_frames(std::span(chunk_).first(cut_ + static_cast<std::size_t>(got)));
  return true;
}

void PipeQueue::parse_frames(std::span<const std::byte> bytes) {
  while (bytes.size() >= sizeof(FrameHeader)) {
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    check(header.bytes <= max_payload && header.kind <= (part | first | last),
          "[queue] expected a frame of at most {} bytes, got one of {} of kind {}", max_payload, header.bytes,
          header.kind);
    if (bytes.size() < sizeof(header) + header.bytes) break;
    const auto payload = bytes.subspan(sizeof(header), header.bytes);
    bytes = bytes.subspan(sizeof(header) + header.bytes);
    if (header.kind == 0) {
      waiting_.emplace_back(payload.begin(), payload.end());
      continue;
    }
    if (header.kind & first) {  // the writer of an unfinished message held the lock, so it is dead
      unfinished_.clear();
      in_long_ = true;
    }
    check(in_long_, "[queue] expected the beginning of a long message, got a later part");
    unfinished_.insert(unfinished_.end(), payload.begin(), payload.end());
    if (header.kind & last) {
      waiting_.push_back(std::move(unfinished_));
      unfinished_ = {};
      in_long_ = false;
    }
  }
  cut_ = bytes.size();
  if (cut_ > 0) std::memmove(chunk_.data(), bytes.data(), cut_);
}

}  // namespace tandem
