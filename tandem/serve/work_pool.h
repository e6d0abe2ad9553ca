// Threads that take functions from a queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

class WorkPool {
 public:
  // Computation in these threads stays on one core each: parallel_for does not start others.
  explicit WorkPool(int threads);
  // Runs what is queued, then ends the threads.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  int thread_count() const { return static_cast<int>(threads_.size()); }
  // From any thread. Work is given the number of its thread, from 0; an exception ends it alone.
  using Work = std::function<void(int thread)>;
  void post(Work work);

 private:
  void run(int thread);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
