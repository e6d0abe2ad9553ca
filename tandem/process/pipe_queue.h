// PipeQueue: messages from many writers to one reader over a pipe, between threads and between processes.
//
// Where synchronization is needed, and where it is not:
// - A message whose frame (8 bytes of header plus the message) is at most PIPE_BUF bytes is one write(). The
//   kernel writes it atomically, even when the writer is killed: no lock.
// - A longer message is several frames of at most PIPE_BUF bytes. Each frame is atomic, but the frames of two
//   writers would interleave, so a writer holds a lock from the first frame to the last: a mutex in shared
//   memory, since writers may be processes, and a robust one, since they may be killed. Short messages do not
//   take the lock: they may come between the frames of a long one, and the header distinguishes them.
// - A writer killed while it holds the lock leaves an incomplete message. The next writer to lock the mutex
//   gets EOWNERDEAD, makes it consistent and writes its own message; the reader drops the incomplete one when
//   it reads the first frame of the new one. So a killed writer blocks nobody. (A stopped writer keeps the
//   lock: long messages of others wait for it, short ones do not.)
// - Reading needs no lock: there is one reader.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tandem/process/descriptor.h"

namespace tandem {

/// The bytes of one message; any length, also 0.
using Message = std::vector<std::byte>;

/// The file descriptors of a queue, to pass to another process; −1 for an end that is not needed there.
struct PipeQueueEnds {
  int read = -1;
  int write = -1;
  int lock = -1;  ///< shared memory that holds the lock; writers need it
};

/// A queue of messages from many writers to one reader, between threads or processes. It is bounded by the
/// capacity of the pipe. Any number of threads may call put() on the same object at the same time; all other
/// members are for the reader's thread. Messages are never torn or mixed, even when writers are killed, and
/// each writer's messages arrive in order.
class PipeQueue {
 public:
  /// A new queue with both ends. Throws Error when no file descriptor is left.
  PipeQueue();
  /// A queue from the descriptors of one made elsewhere; takes ownership of them. Throws Error when a
  /// descriptor is not open or `lock` is not a queue's lock.
  explicit PipeQueue(const PipeQueueEnds& ends);
  ~PipeQueue();
  PipeQueue(PipeQueue&& other) noexcept;
  PipeQueue& operator=(PipeQueue&& other) noexcept;

  /// The descriptors, which stay owned by the queue. All are close-on-exec: a process that is started must be
  /// given them explicitly.
  PipeQueueEnds ends() const { return {read_.get(), write_.get(), lock_file_.get()}; }

  /// Appends a message; blocks while the pipe is full. Throws Error when the reader is gone (no SIGPIPE).
  void put(std::span<const std::byte> message) const;

  /// Blocks for the next message. Returns none when every writer is gone and all messages have been read.
  std::optional<Message> get();
  /// As get(), but also returns none after the timeout; ended() distinguishes the two. A timeout of 0 does
  /// not block.
  std::optional<Message> get(std::chrono::milliseconds timeout);

  /// The number of complete messages that wait. Counting moves them from the pipe into the reader's memory,
  /// so a reader that only counts lifts the bound the pipe puts on its writers.
  std::int64_t length();
  bool empty() { return length() == 0; }
  /// Whether every writer is gone and all messages have been read.
  bool ended() const { return ended_ && waiting_.empty(); }

  /// A reader that does not write closes its write end, so that it can see when all writers are gone.
  void close_writer() { write_.reset(); }
  void close_reader() { read_.reset(); }

 private:
  struct Lock;
  void map_lock();
  void put_long(std::span<const std::byte> message) const;
  bool wait_readable(std::optional<std::chrono::steady_clock::time_point> until) const;
  bool drain();
  void parse_frames(std::span<const std::byte> bytes);

  Descriptor read_;
  Descriptor write_;
  Descriptor lock_file_;
  Lock* lock_ = nullptr;
  std::vector<std::byte> chunk_;  // the bytes read last
  std::size_t cut_ = 0;           // bytes of an incomplete frame, at the beginning of chunk_
  Message unfinished_;            // the frames of a long message so far
  bool in_long_ = false;
  std::deque<Message> waiting_;
  bool ended_ = false;
};

}  // namespace tandem
