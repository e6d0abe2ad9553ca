#include "tandem/serve/work_pool.h"

#include <exception>
#include <utility>

#include "tandem/core/parallel.h"

namespace tandem {

WorkPool::WorkPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { run(i); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkPool::run(int thread) {
  const ThreadLimit one(1);
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || is_ending_; });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      work(thread);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace tandem
