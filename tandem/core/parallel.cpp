#include "tandem/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>

#include "tandem/core/check.h"
#include "tandem/core/thread_count.h"

namespace tandem {
namespace {

constexpr int max_threads = 4096;
std::atomic<int> configured_threads{0};  // 0: not set
std::atomic<int> default_threads{0};     // 0: not known yet
std::atomic<int> given_cpus{0};          // 0: not set
thread_local int thread_limit = 0;       // 0: no limit

// The first number of a variable such as OMP_NUM_THREADS=4,2; 0 if there is none.
int threads_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return 0;
  const char* const end = text + std::strlen(text);
  int count = 0;
  const auto [next, error] = std::from_chars(text, end, count);
  const bool is_whole = error == std::errc{} && (next == end || *next == ',');
  return is_whole && count >= 1 && count <= max_threads ? count : 0;
}

// 0: none of them.
int threads_in_environment() {
  for (const char* const variable : {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"})
    if (const int count = threads_in(variable); count > 0) return count;
  return 0;
}

}  // namespace

// cgroup v2 has "max 100000" or "150000 100000" in one file, v1 the two numbers in two files.
int cpu_quota() {
  double quota = 0, period = 0;
  std::string word;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> word >> period) {
    if (word != "max") quota = std::atof(word.c_str());
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return 1 << 20;
  return std::max(1, static_cast<int>(std::lround(quota / period)));
}

int default_thread_count() {
  const int given = threads_in_environment();
  return given > 0 ? given : usable_cpus();
}

bool is_thread_count_given() {
  return configured_threads.load(std::memory_order_relaxed) > 0 || threads_in_environment() > 0;
}

int usable_cpus() {
  // OpenMP reports the process's affinity mask even when this thread is bound to one CPU of it.
  static const int cpus = std::max(1, std::min(omp_get_num_procs(), cpu_quota()));
  const int given = given_cpus.load(std::memory_order_relaxed);
  return given > 0 ? given : cpus;
}

void set_usable_cpus(int count) {
  check(count >= 1, "[threads] expected 1 CPU or more, got {}", count);
  given_cpus.store(count, std::memory_order_relaxed);
  default_threads.store(default_thread_count(), std::memory_order_relaxed);
}

int team_size() {
  const int configured = configured_threads.load(std::memory_order_relaxed);
  if (configured > 0) return configured;
  int unless_set = default_threads.load(std::memory_order_relaxed);
  if (unless_set == 0) default_threads.store(unless_set = default_thread_count(), std::memory_order_relaxed);
  return unless_set;
}

int thread_count() {
  return thread_limit > 0 ? std::min(thread_limit, team_size()) : team_size();
}

void set_thread_count(int count) {
  check(count >= 1 && count <= max_threads, "[threads] expected a thread count from 1 to {}, got {}",
        max_threads, count);
  configured_threads.store(count, std::memory_order_relaxed);
}

ThreadLimit::ThreadLimit(int limit) : previous_(thread_limit) {
  check(limit >= 1, "[threads] expected a thread limit of 1 or more, got {}", limit);
  thread_limit = previous_ > 0 ? std::min(previous_, limit) : limit;
}

ThreadLimit::~ThreadLimit() {
  thread_limit = previous_;
}

namespace {

// One running parallel_for. ThreadSanitizer does not know libgomp's barriers, so `started` and `finished`
// repeat the ordering they provide: a thread reads `started` before any other member.
struct Job {
  detail::RangeFunction function;
  void* context;
  std::int64_t count;
  std::int64_t grain;
  std::int64_t grains;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  std::atomic<int> started{0};
  std::atomic<int> finished{0};

  void run(std::int64_t thread, std::int64_t threads) {
    (void)started.load(std::memory_order_acquire);
    const std::int64_t begin = grains * thread / threads * grain;
    const std::int64_t end = std::min(grains * (thread + 1) / threads * grain, count);
    try {
      if (begin < end) function(context, begin, end);
    } catch (...) {
      std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
    finished.fetch_add(1, std::memory_order_release);
  }
};

// ThreadSanitizer does not know how OpenMP passes its variables to the threads. They must therefore not reach
// an instrumented function such as std::min.
__attribute__((no_sanitize("thread"))) void run_in_team(Job* job, int threads) {
#pragma omp parallel num_threads(std::max(threads, team_size()))
  {
    const int team = omp_get_num_threads();
    const int active = threads < team ? threads : team;
    if (omp_get_thread_num() < active) job->run(omp_get_thread_num(), active);
  }
}

}  // namespace

namespace detail {

void run_parallel(std::int64_t count, std::int64_t grain, RangeFunction function, void* context) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t grains = (count - 1) / grain + 1;
  const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), grains));
  if (threads <= 1 || omp_in_parallel()) return function(context, 0, count);

  Job job{.function = function, .context = context, .count = count, .grain = grain, .grains = grains};
  job.started.store(1, std::memory_order_release);
  run_in_team(&job, threads);
  (void)job.finished.load(std::memory_order_acquire);
  if (job.failure) std::rethrow_exception(job.failure);
}

RangeQueue::Range RangeQueue::next() {
  const std::int64_t begin = __atomic_fetch_add(&next_, grain_, __ATOMIC_RELAXED);
  return {begin, std::min(begin + grain_, count_)};
}

}  // namespace detail
}  // namespace tandem
