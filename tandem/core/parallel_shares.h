// Parallel loops for threads of uneven speed, as virtual cores have that share real ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "tandem/core/index_range.h"
#include "tandem/core/parallel.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/core/spin.h"

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

// One for each thread, of [0, count).
inline void append_shares(RecycledVector<SharedRange>& shares, std::int64_t count, std::int64_t threads) {
  for (std::int64_t i = 0; i < threads; ++i) shares.emplace_back(part_of(count, threads, i));
}

// Calls f(piece) for pieces of a thread's own share, then of others, until all are taken.
template <class F>
void take_shares(std::span<SharedRange> shares, std::int64_t own, const F& f) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    SharedRange& share = shares[(static_cast<std::size_t>(own) + i) % shares.size()];
    for (IndexRange piece = share.take(); piece.count() > 0; piece = share.take()) f(piece);
  }
}

}  // namespace detail

/// Calls f(range, thread) on disjoint ranges that cover [0, count), as parallel_for with a grain of 1 does.
/// But a thread computes its share in a few pieces, the largest first, and then takes pieces of other shares
/// that their threads have not begun. `thread` is less than thread_count(), and another one for every thread.
template <class F>
void parallel_shares(std::int64_t count, F&& f) {
  const std::int64_t threads = std::min<std::int64_t>(count, thread_count());
  detail::RecycledVector<detail::SharedRange> shares;
  detail::append_shares(shares, count, threads);
  parallel_for(threads, 1, [&](std::int64_t own, std::int64_t) {
    detail::take_shares(shares, own, [&](IndexRange piece) { f(piece, own); });
  });
}

/// Several such loops in a row, without a barrier after each: f(stage, range, thread) on ranges that cover
/// [0, counts[stage]). No range of a stage begins before all ranges of the stage before have begun and those
/// of the one before that have ended; what else a range needs of the stage before, f waits for itself, with
/// spin_until(). f must not throw, because other threads would wait forever.
template <class F>
void parallel_stages(std::span<const std::int64_t> counts, F&& f) {
  const std::int64_t threads = thread_count();
  constexpr std::size_t spacing = 8;  // each number in a cache line of its own
  detail::RecycledVector<std::int64_t> ended(counts.size() * spacing);
  detail::RecycledVector<detail::SharedRange> shares;
  for (const std::int64_t count : counts) detail::append_shares(shares, count, threads);
  parallel_for(threads, 1, [&](std::int64_t own, std::int64_t) {
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      if (stage >= 2)
        spin_until([&] {
          return std::atomic_ref(ended[(stage - 2) * spacing]).load(std::memory_order_acquire) ==
                 counts[stage - 2];
        });
      const std::size_t per_stage = static_cast<std::size_t>(threads);
      detail::take_shares(
          std::span(shares).subspan(stage * per_stage, per_stage), own, [&](IndexRange piece) {
            f(stage, piece, own);
            std::atomic_ref(ended[stage * spacing]).fetch_add(piece.count(), std::memory_order_release);
          });
    }
  });
}

}  // namespace tandem
