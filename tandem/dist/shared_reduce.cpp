#include "tandem/dist/shared_reduce.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

constexpr std::int64_t line = 16;  // floats of a cache line

std::int64_t whole_lines(std::int64_t floats) {
  return (floats + line - 1) / line * line;
}

// Floats that are worth a thread.
constexpr std::int64_t grain = 1 << 14;

void copy_floats(float* to, const float* from, std::int64_t count) {
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

}  // namespace

SharedReduce::SharedReduce(std::shared_ptr<LocalSegment> segment, int rank, std::int64_t piece,
                           ReduceArrays arrays)
    : segment_(std::move(segment)),
      rank_(rank),
      ranks_(segment_->ranks()),
      piece_(piece),
      arrays_(std::move(arrays)) {
  expect(arrays_.size <= max_floats(*segment_, *arrays_.tree));
}

std::int64_t SharedReduce::max_floats(const LocalSegment& segment, const TreeSum& tree) {
  return segment.slot_floats() / tree.max_count() / line * line;
}

int SharedReduce::behind(Counter counter, std::int64_t count) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if ((segment_->rank(rank).*counter).load(std::memory_order_acquire) < count) return rank;
  return -1;
}

// Counters only say how many pieces are done, so pieces go through each phase in order.
bool SharedReduce::is_next(Counter counter) const {
  return (segment_->rank(rank_).*counter).load(std::memory_order_relaxed) == piece_;
}

void SharedReduce::announce(Counter counter) const {
  (segment_->rank(rank_).*counter).store(piece_ + 1, std::memory_order_release);
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) segment_->raise_signal(rank);
}

bool SharedReduce::advance() {
  const std::int64_t previous = piece_ - LocalSegment::slots;  // used the same slots
  behind_ = -1;
  if (phase_ == Phase::write && is_next(&RankWords::written)) {
    if ((behind_ = behind(&RankWords::summed, previous + 1)) >= 0) return false;
    info(rank_) = {arrays_.size, arrays_.tree->shards()};
    write();
    announce(&RankWords::written);
    phase_ = Phase::sum;
  }
  if (phase_ == Phase::sum && is_next(&RankWords::summed)) {
    if ((behind_ = behind(&RankWords::written, piece_ + 1)) >= 0) return false;
    if ((behind_ = behind(&RankWords::copied, previous + 1)) >= 0) return false;
    check_same_operation();
    sum();
    announce(&RankWords::summed);
    phase_ = Phase::copy;
  }
  if (phase_ == Phase::copy && is_next(&RankWords::copied)) {
    if ((behind_ = behind(&RankWords::summed, piece_ + 1)) >= 0) return false;
    copy();
    announce(&RankWords::copied);
    phase_ = Phase::done;
  }
  return phase_ == Phase::done;
}

PieceInfo& SharedReduce::info(int rank) const {
  return segment_->rank(rank).info[piece_ % LocalSegment::slots];
}

void SharedReduce::check_same_operation() const {
  const PieceInfo mine = info(rank_);
  for (int rank = 0; rank < ranks_; ++rank)
    check(info(rank) == mine, "[group] rank {} sums {} numbers of {} shards, rank {} {} numbers of {} shards",
          rank_, mine.floats, mine.shards, rank, info(rank).floats, info(rank).shards);
}

int SharedReduce::waits_for() const {
  return behind_;
}

void SharedReduce::write() const {
  const FloatRange own = part_of_rank(arrays_.size, ranks_, rank_);
  float* to = segment_->slot(rank_, piece_);
  for (const float* array : arrays_.mine) {
    copy_floats(to, array, own.begin);
    copy_floats(to + own.end, array + own.end, arrays_.size - own.end);
    to += whole_lines(arrays_.size);
  }
}

void SharedReduce::sum() const {
  const TreeSum& tree = *arrays_.tree;
  const FloatRange own = part_of_rank(arrays_.size, ranks_, rank_);
  std::vector<const float*> all;
  all.reserve(static_cast<std::size_t>(tree.node_count()));
  for (int rank = 0; rank < ranks_; ++rank)
    for (int node = 0; node < tree.count(rank); ++node)
      all.push_back((rank == rank_ ? arrays_.mine[static_cast<std::size_t>(node)]
                                   : segment_->slot(rank, piece_) + node * whole_lines(arrays_.size)) +
                    own.begin);
  float* const result = segment_->result(rank_, piece_);
  parallel_for((own.count() + line - 1) / line, grain / line, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * line, end = std::min(last * line, own.count());
    std::vector<const float*> part = all;
    for (const float*& array : part) array += begin;
    tree.add(part, {arrays_.out + own.begin + begin, static_cast<std::size_t>(end - begin)}, result + begin);
  });
}

void SharedReduce::copy() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const FloatRange part = part_of_rank(arrays_.size, ranks_, rank);
    if (rank != rank_) copy_floats(arrays_.out + part.begin, segment_->result(rank, piece_), part.count());
  }
}

}  // namespace tandem
