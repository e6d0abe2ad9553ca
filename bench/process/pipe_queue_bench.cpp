// Messages per second from several writers to one reader: PipeQueue, which also works between processes, next
// to a typical queue for threads (a mutex, two condition variables and a bound).
// bench/peers/peer_python_queue.py measures multiprocessing.Queue with the same writers and sizes.
#include <benchmark/benchmark.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/process/pipe_queue.h"

namespace tandem {
namespace {

class MutexQueue {
 public:
  void put(std::span<const std::byte> bytes) {
    Message message(bytes.begin(), bytes.end());
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return waiting_.size() < bound; });
    waiting_.push_back(std::move(message));
    lock.unlock();
    not_empty_.notify_one();
  }
  std::optional<Message> get() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !waiting_.empty(); });
    Message message = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return message;
  }

 private:
  static constexpr std::size_t bound = 1024;
  std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<Message> waiting_;
};

// Writers put messages until `stop` is set; an empty message marks a writer's end.
template <class Queue>
void messages(benchmark::State& state) {
  const auto writers = static_cast<int>(state.range(0));
  const Message message(static_cast<std::size_t>(state.range(1)), std::byte{1});
  Queue queue;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < writers; ++i)
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) queue.put(message);
      queue.put({});
    });
  for (auto _ : state) benchmark::DoNotOptimize(queue.get());
  stop = true;
  for (int left = writers; left > 0;)
    if (queue.get()->empty()) --left;
  for (std::thread& thread : threads) thread.join();
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"writers", "bytes"})->ArgsProduct({{1, 8}, {16, 4000, 65536}})->UseRealTime();
}

BENCHMARK(messages<PipeQueue>)->Name("queue/pipe")->Apply(sizes);
BENCHMARK(messages<MutexQueue>)->Name("queue/mutex")->Apply(sizes);

}  // namespace
}  // namespace tandem
