// LocalSegment: the shared memory between the ranks of one machine, and what lies where in it.
//
// - One block of words per rank: whether it has attached, its process, a signal others raise when they have
//   done something it may wait for, and how far it is with sums in shared memory (shared_reduce.h).
// - One ring of bytes for each ordered pair of ranks, with one writer and one reader (local_transport.h).
// - Slots for sums: `slots` arrays to read from and `slots` results per rank, used in turn.
// Memory that no rank touches is not allocated, so rings between ranks that exchange nothing cost nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tandem/process/shared_memory.h"

namespace tandem {

enum class RankState : std::int32_t { absent, attached, left };

// What a rank sums in a piece; the same on all ranks unless they call different operations.
struct PieceInfo {
  std::int64_t floats, shards;

  friend bool operator==(const PieceInfo&, const PieceInfo&) = default;
};

// Zero bytes are the initial state of all of these.
struct RankWords {
  static constexpr int slots = 3;

  std::atomic<RankState> state;
  std::atomic<std::int32_t> pid;  // 0: not known yet
  alignas(64) std::atomic<std::uint32_t> signal;
  std::atomic<std::int32_t> sleepers;  // threads that wait for `signal` to change
  // The pieces of sums this rank has written, summed and copied; a line each, as others poll them.
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> summed;
  alignas(64) std::atomic<std::int64_t> copied;
  alignas(64) PieceInfo info[slots];  // of the pieces in the slots; valid once they are written
};

struct RingWords {
  alignas(64) std::atomic<std::uint64_t> head;  // bytes written so far
  alignas(64) std::atomic<std::uint64_t> tail;  // bytes read so far
};

static_assert(std::atomic<RankState>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

class LocalSegment {
 public:
  static constexpr int max_ranks = 256;
  static constexpr int slots = RankWords::slots;

  // New memory for `ranks` ranks. Error when it is not there.
  explicit LocalSegment(int ranks);
  // That of another process; takes the descriptor over. Error when it is something else.
  explicit LocalSegment(Descriptor file);

  int fd() const { return memory_.fd(); }
  int ranks() const;

  // For the launcher: the process it started as `rank`, so that the others notice its end even if it ends
  // before it attaches.
  void set_process(int rank, std::int64_t pid) const;

  RankWords& rank(int rank) const;
  RingWords& ring(int from, int to) const;
  std::byte* ring_bytes(int from, int to) const;
  std::int64_t ring_capacity() const;  // a power of two

  // What rank `rank` brings to a sum, and its part of the result.
  float* slot(int rank, std::int64_t piece) const;
  float* result(int rank, std::int64_t piece) const;
  std::int64_t slot_floats() const;  // of slot(); result() has a rank's part of them, and 16

  // Tells `rank` that something it may wait for has happened.
  void raise_signal(int rank) const;
  // Waits until rank's signal is not `seen` any more, at most for `max_ns`.
  void wait_signal(int rank, std::uint32_t seen, std::int64_t max_ns) const;

 private:
  struct Header;
  const Header& header() const;

  SharedMemory memory_;
};

}  // namespace tandem
