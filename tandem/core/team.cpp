#include "tandem/core/team.h"

#include <omp.h>

#include "tandem/core/error.h"
#include "tandem/core/spin.h"

namespace tandem {
namespace {

// As in parallel.cpp: ThreadSanitizer does not know libgomp's barriers, so two atomics repeat their ordering.
struct Job {
  detail::MemberFunction function;
  void* context;
  Barrier barrier;
  std::atomic<int> started{0};
  std::atomic<int> finished{0};

  void run(int index, int count) {
    (void)started.load(std::memory_order_acquire);
    function(context, TeamMember{.index = index, .count = count, .barrier = barrier});
    finished.fetch_add(1, std::memory_order_release);
  }
};

__attribute__((no_sanitize("thread"))) void run_job(Job* job, int threads) {
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_num_threads() == threads)
      job->run(omp_get_thread_num(), threads);
    else if (omp_get_thread_num() == 0)
      job->run(0, 1);  // nested in another team, or the system granted fewer threads
  }
}

}  // namespace

void Barrier::arrive_and_wait() {
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  spin_until([&] { return generation_.load(std::memory_order_acquire) != generation; });
}

namespace detail {

void start_team(int threads, MemberFunction function, void* context) {
  Job job{.function = function, .context = context, .barrier = Barrier(threads)};
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
