// PipeQueue: messages from many writers to one reader over a pipe, between threads and between processes.
//
// Where synchronisation is needed, and where it is not:
// - A message whose frame (8 bytes of header and the message) is at most PIPE_BUF bytes is one write(). The
//   kernel puts it into the pipe whole or not at all, never mixed with another's, even when the writer is
//   killed: no lock.
// - A longer message is several frames of at most PIPE_BUF bytes. Each is whole, but two writers' frames
// would
//   mix, so a writer holds a lock from the first frame to the last: a mutex in shared memory, since writers
//   may be processes, and a robust one, since they may be killed. Short messages take no part in it: they may
//   come between the frames of a long one, and the reader tells them apart by the header.
// - A writer killed while it holds the lock leaves a message without an end. The kernel marks the mutex; the
//   next to lock it gets EOWNERDEAD, makes it consistent and begins its own message, and the reader drops the
//   unfinished one when it sees that beginning. Nobody waits for the dead. (A writer that is stopped, not
//   dead, keeps the lock: then long messages of others wait for it, short ones do not.)
// - Reading needs no lock: there is one reader, and what it has taken out of the pipe is its own.
// In one process many threads may call put() at the same time on the same object; everything else is for the
// reader's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tandem/data/descriptor.h"

namespace tandem {

using Message = std::vector<std::byte>;

// A queue taken apart, to be handed to another process; −1 for an end that is not wanted there.
struct PipeQueueEnds {
  int read = -1, write = -1;
  int lock = -1;  // the memory with the lock; writers need it
};

class PipeQueue {
 public:
  // Both ends. Error when there are no more file descriptors.
  PipeQueue();
  // Put together from the ends another process made; takes the descriptors over.
  explicit PipeQueue(const PipeQueueEnds& ends);
  ~PipeQueue();
  PipeQueue(PipeQueue&& other) noexcept;
  PipeQueue& operator=(PipeQueue&& other) noexcept;

  // The descriptors, which stay the queue's. All are closed on exec: the one who starts a process hands them
  // over.
  PipeQueueEnds ends() const { return {read_.get(), write_.get(), lock_file_.get()}; }

  // Waits while the pipe is full. Error when the reader is gone (no SIGPIPE is raised).
  void put(std::span<const std::byte> message) const;

  // The next message. Nothing: every writer is gone, and what they put has been read.
  std::optional<Message> get();
  // Nothing also when none came in time; ended() tells the two apart. A time of 0 does not wait.
  std::optional<Message> get(std::chrono::milliseconds timeout);

  // Whole messages that wait. To count them it takes what is in the pipe into the reader's memory, so a
  // reader that only counts lifts the bound the pipe puts on its writers.
  std::int64_t length();
  bool empty() { return length() == 0; }
  bool ended() const { return ended_ && waiting_.empty(); }

  // A reader that does not write itself closes this end: else it would wait for itself.
  void close_writer() { write_.reset(); }
  void close_reader() { read_.reset(); }

 private:
  struct Lock;
  void map_lock();
  void put_long(std::span<const std::byte> message) const;
  bool wait_readable(std::optional<std::chrono::steady_clock::time_point> until) const;
  bool drain();
  void take_frames(std::span<const std::byte> bytes);

  Descriptor read_, write_, lock_file_;
  Lock* lock_ = nullptr;
  std::vector<std::byte> chunk_;  // bytes read last
  std::size_t cut_ = 0;           // of a frame whose rest has not been read yet: at the beginning of chunk_
  Message unfinished_;            // a long message so far
  bool in_long_ = false;
  std::deque<Message> waiting_;
  bool ended_ = false;
};

}  // namespace tandem
