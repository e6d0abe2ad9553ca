// Threads. There is one OpenMP team for computing; parallel_for and parallel_tasks split a range over it.
// Loader workers, whose kernels must stay on one thread, hold a ThreadLimit of 1.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tandem {

// CPUs this process may use: affinity mask and cgroup quota, at least 1.
int usable_cpus();

// Threads of the team: set_thread_count(), else usable_cpus(). A parallel_for for fewer threads still calls
// the whole team, and the others have nothing to do: GCC's OpenMP ends the threads that a smaller team lacks,
// and starting them again costs a hundred times more than waking them.
int team_size();

// Threads parallel_for uses on this thread: the innermost ThreadLimit, else set_thread_count(), else
// usable_cpus().
int thread_count();
void set_thread_count(int count);

// While it lives, parallel_for called from this thread uses at most `limit` threads.
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
}  // namespace detail

// Calls f(begin, end) on disjoint ranges that cover [0, count), each a multiple of `grain` long but the last,
// in the team's threads. Fewer than two grains, or a call from inside a parallel_for, runs on the calling
// thread. The first exception thrown by f is thrown again here.
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

// The same for pieces that take unequal times, or threads that are held up: each thread takes the next
// `grain` when it is done with one. Each begins by calling `make`, and gives its ranges to what that returns,
// which can own whatever a thread uses again and again.
template <class Make>
void parallel_tasks(std::int64_t count, std::int64_t grain, Make&& make) {
  std::atomic<std::int64_t> next{0};
  const std::int64_t grains = count > 0 ? (count - 1) / grain + 1 : 0;
  parallel_for(std::min<std::int64_t>(grains, thread_count()), 1, [&](std::int64_t, std::int64_t) {
    auto f = make();
    for (std::int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;)
      f(begin, std::min(begin + grain, count));
  });
}

}  // namespace tandem
