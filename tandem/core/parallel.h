// Threads. There is one OpenMP team for computing; parallel_for splits a range over it. Loader workers, whose
// kernels must stay on one thread, hold a ThreadLimit of 1.
#pragma once

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

}  // namespace tandem
