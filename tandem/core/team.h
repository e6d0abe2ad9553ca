// A team of threads for many short phases separated by barriers. A barrier costs about one microsecond, much
// less than starting a parallel_for per phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tandem {

// A reusable barrier. Waiting threads spin for tens of microseconds, then yield the CPU.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void arrive_and_wait();

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

struct TeamMember {
  int index;
  int count;
  Barrier& barrier;

  void arrive_and_wait() const {
    if (count > 1) barrier.arrive_and_wait();
  }
  // This member's part of [0, work): a contiguous range that depends only on index and count.
  std::int64_t begin(std::int64_t work) const { return work * index / count; }
  std::int64_t end(std::int64_t work) const { return work * (index + 1) / count; }
};

namespace detail {
using MemberFunction = void (*)(void* context, const TeamMember& member);
void start_team(int threads, MemberFunction function, void* context);
}  // namespace detail

// Calls f(member) concurrently on `threads` threads, including the calling one. f must not throw, because the
// others would wait forever.
template <class F>
void run_team(int threads, F&& f) {
  using Function = std::remove_reference_t<F>;
  detail::start_team(
      threads, [](void* context, const TeamMember& member) { (*static_cast<Function*>(context))(member); },
      const_cast<std::remove_const_t<Function>*>(&f));
}

}  // namespace tandem
