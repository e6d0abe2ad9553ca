// A parallel loop for threads of uneven speed, as virtual cores have that share real ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "tandem/core/index_range.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"

namespace tandem {
namespace detail {

// The range of one thread. Any thread may take the next piece: half of what is left, at least an eighth of
// the whole.
class SharedRange {
 public:
  SharedRange() = default;
  explicit SharedRange(IndexRange range)
      : next_(range.begin), end_(range.end), least_(std::max<std::int64_t>(range.count() / 8, 1)) {}

  // Empty after the last piece.
  IndexRange take() {
    const std::atomic_ref<std::int64_t> next(next_);
    std::int64_t begin = next.load(std::memory_order_relaxed), end;
    do {
      end = std::min(begin + std::max(least_, (end_ - begin) / 2), end_);
      if (begin >= end) return {end, end};
    } while (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return {begin, end};
  }

 private:
  std::int64_t next_ = 0, end_ = 0, least_ = 1;
};

}  // namespace detail

/// Calls f(range, thread) on disjoint ranges that cover [0, count), as parallel_for with a grain of 1 does.
/// But a thread computes its share in a few pieces, the largest first, and then takes pieces of other shares
/// that their threads have not begun. `thread` is less than thread_count(), and another one for every thread.
template <class F>
void parallel_shares(std::int64_t count, F&& f) {
  const std::int64_t threads = std::min<std::int64_t>(count, thread_count());
  detail::RecycledVector<detail::SharedRange> shares;
  for (std::int64_t i = 0; i < threads; ++i) shares.emplace_back(part_of(count, threads, i));
  parallel_for(threads, 1, [&](std::int64_t own, std::int64_t) {
    for (std::int64_t i = 0; i < threads; ++i) {
      detail::SharedRange& share = shares[static_cast<std::size_t>((own + i) % threads)];
      for (IndexRange piece = share.take(); piece.count() > 0; piece = share.take()) f(piece, own);
    }
  });
}

}  // namespace tandem
