// Collective operations over a transport, from messages between pairs of ranks.
//
// Every rank must start the same operations in the same order. Operations of one kind get consecutive numbers
// (`sequence`), so that several can be under way at once; they are part of the tags of their messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/dist/operation.h"
#include "tandem/dist/reduce_arrays.h"

namespace tandem {

// What a message is for.
enum class Channel { control, heartbeat, gather, broadcast, partials, sums };
int message_tag(Channel channel, std::int64_t sequence);

// all[r * mine.size() …] = the bytes of rank r, on every rank. Each rank sends to all others.
class AllGather : public Operation {
 public:
  AllGather(Transport& transport, std::int64_t sequence, std::span<const std::byte> mine,
            std::span<std::byte> all);
  bool advance() override;
  int waits_for() const override;

 private:
  RequestSet receives_, sends_;
};

// Copies the bytes of rank `from` to all ranks, along a binomial tree.
class Broadcast : public Operation {
 public:
  Broadcast(Transport& transport, std::int64_t sequence, std::span<std::byte> bytes, int from);
  bool advance() override;
  int waits_for() const override;

 private:
  Transport* transport_;
  std::span<std::byte> bytes_;
  int from_, tag_;
  RequestSet receive_, sends_;
  bool received_ = false;
};

// The part of `size` floats that `rank` sums: whole cache lines.
struct FloatRange {
  std::int64_t begin, end;

  std::int64_t count() const { return end - begin; }
};
FloatRange part_of_rank(std::int64_t size, int ranks, int rank);

// Keeps memory of sums for the next ones: to get it from the system and back costs as much as to fill it.
class ScratchPool {
 public:
  struct Memory {
    std::unique_ptr<float[]> data;
    std::int64_t floats = 0;
  };

  // Not initialized.
  Memory take(std::int64_t floats);
  void give_back(Memory memory);

 private:
  std::vector<Memory> free_;
};

// out = the sum of the arrays of all ranks along the tree. Each rank receives its part of all arrays, adds
// them, and sends the sums to all: 2 (N − 1) / N of the data per rank, as much as a ring moves. Small arrays
// are sent to all ranks as a whole instead, and each adds them itself: one exchange instead of two.
class ExchangeReduce : public Operation {
 public:
  // Larger arrays are reduced in pieces of this many floats, several at a time.
  static constexpr std::int64_t max_floats = std::int64_t{1} << 19;
  // Arrays of all ranks that have at most this many floats together are sent as a whole.
  static constexpr std::int64_t max_whole_floats = std::int64_t{1} << 16;

  ExchangeReduce(Transport& transport, std::int64_t sequence, ReduceArrays arrays, ScratchPool& scratch);
  ~ExchangeReduce() override;
  bool advance() override;
  int waits_for() const override;

 private:
  FloatRange part(int rank) const;
  void add_own_part();
  void exchange_sums();

  Transport* transport_;
  std::int64_t sequence_;
  ReduceArrays arrays_;
  bool whole_;
  FloatRange own_;  // what this rank adds
  ScratchPool* scratch_;
  ScratchPool::Memory received_;  // our part of the arrays of other ranks, in the order of the nodes
  RequestSet receives_, sends_;
  bool summed_ = false;
};

}  // namespace tandem
