// SharedReduce: the sum over the ranks of one machine, in the memory they share.
//
// For a piece of the arrays, each rank
// 1. writes its arrays to its slot, but for the part it sums itself,
// 2. when all have written: adds its part of all slots, into its result and into its own memory,
// 3. when all have summed: copies the other ranks' results.
// Pieces are small enough for the slots to stay in the caches, and three are under way at a time, so that
// ranks rarely wait for each other: compared with messages, half of the copies and no ring in between.
//
// A slot is used again by piece t + slots. It is free to be written when all ranks have summed piece t, and
// its result when all have copied piece t.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/dist/collectives.h"
#include "tandem/dist/local_segment.h"

namespace tandem {

class SharedReduce : public Operation {
 public:
  // `piece` counts the pieces of all sums of the run; the arrays have at most max_floats() floats.
  SharedReduce(std::shared_ptr<LocalSegment> segment, int rank, std::int64_t piece, ReduceArrays arrays);

  static std::int64_t max_floats(const LocalSegment& segment, const TreeSum& tree);

  bool advance() override;
  int waits_for() const override;

 private:
  enum class Phase { write, sum, copy, done };
  using Counter = std::atomic<std::int64_t> RankWords::*;

  // The first rank whose counter is below `count`; −1 when there is none.
  int behind(Counter counter, std::int64_t count) const;
  bool is_next(Counter counter) const;
  void announce(Counter counter) const;
  PieceInfo& info(int rank) const;
  void check_same_operation() const;
  void write() const;
  void sum() const;
  void copy() const;

  std::shared_ptr<LocalSegment> segment_;
  int rank_, ranks_;
  std::int64_t piece_;
  ReduceArrays arrays_;
  Phase phase_ = Phase::write;
  int behind_ = -1;
};

}  // namespace tandem
