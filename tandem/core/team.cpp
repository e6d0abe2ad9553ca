#include "tandem/core/team.h"

#include <omp.h>

#include <thread>

#include "tandem/core/error.h"

namespace tandem {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// As in parallel.cpp: ThreadSanitizer does not see libgomp's barriers, so two atomics state what they order.
struct Job {
  detail::MemberFunction function;
  void* context;
  Meeting meeting;
  std::atomic<int> started{0}, finished{0};

  void run(int me, int team) {
    (void)started.load(std::memory_order_acquire);
    function(context, TeamMember{.index = me, .count = team, .meeting = meeting});
    finished.fetch_add(1, std::memory_order_release);
  }
};

__attribute__((no_sanitize("thread"))) void run_job(Job* job, int threads) {
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_num_threads() == threads)
      job->run(omp_get_thread_num(), threads);
    else if (omp_get_thread_num() == 0)
      job->run(0, 1);  // inside another team, or where the system grants fewer threads
  }
}

}  // namespace

void Meeting::wait() {
  constexpr int patience = 4000;  // looks before giving way: tens of microseconds
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int looks = 0; round_.load(std::memory_order_acquire) == round; ++looks) {
    if (looks < patience)
      relax();
    else
      std::this_thread::yield();
  }
}

namespace detail {

void run_team(int threads, MemberFunction function, void* context) {
  Job job{.function = function, .context = context, .meeting = Meeting(threads)};
  job.started.store(1, std::memory_order_release);
  if (threads == 1)
    job.run(0, 1);
  else
    run_job(&job, threads);
  const int finished = job.finished.load(std::memory_order_acquire);
  expect(finished == threads || finished == 1);
}

}  // namespace detail
}  // namespace tandem
