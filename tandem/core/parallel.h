// CPU threads. parallel_for and parallel_tasks split a range over one OpenMP team that all computation
// shares. Data loader workers, whose kernels must stay on one thread, hold a ThreadLimit of 1.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tandem {

/// The number of CPUs this process may use: the minimum of affinity mask and cgroup quota, at least 1.
int usable_cpus();

/// The number of threads in the team: the value of set_thread_count(), else default_thread_count(). A
/// parallel_for that needs fewer threads still starts the whole team and leaves the others idle, because
/// GCC's OpenMP ends the threads that a smaller team does not need, and creating them again costs a hundred
/// times more than waking them.
int team_size();

/// The number of threads parallel_for uses when called from this thread: the innermost ThreadLimit, otherwise
/// team_size().
int thread_count();

/// Sets the size of the team for the whole process. Throws Error unless `count` is from 1 to 4096.
void set_thread_count(int count);

/// While it exists, parallel_for uses at most `limit` threads when called from the thread that created it. An
/// inner limit cannot raise an outer one. The constructor throws Error when `limit` is less than 1.
class ThreadLimit {
 public:
  explicit ThreadLimit(int limit);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int previous_;
};

namespace detail {
using RangeFunction = void (*)(void* context, std::int64_t begin, std::int64_t end);
void run_parallel(std::int64_t count, std::int64_t grain, RangeFunction function, void* context);

// Hands out consecutive ranges of [0, count), `grain` elements at a time, to any number of threads.
class RangeQueue {
 public:
  RangeQueue(std::int64_t count, std::int64_t grain) : count_(count), grain_(grain) {}

  struct Range {
    std::int64_t begin;
    std::int64_t end;
    explicit operator bool() const { return begin < end; }
  };
  Range next();  // empty after the last one

 private:
  std::int64_t next_ = 0;  // accessed atomically
  std::int64_t count_;
  std::int64_t grain_;
};
}  // namespace detail

/// Calls f(begin, end) from the threads of the team, on disjoint ranges that cover [0, count). Every range
/// starts at a multiple of `grain`. With fewer than two grains, or inside another parallel_for, everything
/// runs on the calling thread. Rethrows the first exception thrown by f.
template <class F>
void parallel_for(std::int64_t count, std::int64_t grain, F&& f) {
  using Function = std::remove_reference_t<F>;
  detail::run_parallel(
      count, grain,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Function*>(context))(begin, end);
      },
      const_cast<std::remove_const_t<Function>*>(&f));
}

/// Like parallel_for with dynamic scheduling, for work of uneven cost: a thread takes the next `grain`
/// elements when it has finished its last. Every thread first calls `make_body`, then calls the result as
/// f(begin, end) for each of its ranges, so the result can own scratch memory that the thread reuses.
template <class MakeBody>
void parallel_tasks(std::int64_t count, std::int64_t grain, MakeBody&& make_body) {
  const std::int64_t grains = count > 0 ? (count - 1) / grain + 1 : 0;
  const std::int64_t threads = thread_count();
  detail::RangeQueue queue(count, grain);
  parallel_for(grains < threads ? grains : threads, 1, [&](std::int64_t, std::int64_t) {
    auto f = make_body();
    while (const auto range = queue.next()) f(range.begin, range.end);
  });
}

}  // namespace tandem
