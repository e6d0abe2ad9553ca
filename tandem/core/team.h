// A team of threads that stays together through many short phases, each ended by a meeting that costs about a
// microsecond: for work whose phases are too short to start threads for (parallel_for does that).
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tandem {

// Where the members of a team wait for each other. Waiting members look again and again for a while, then let
// other threads have the CPU.
class Meeting {
 public:
  explicit Meeting(int members) : members_(members) {}
  void wait();

 private:
  const int members_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
};

struct TeamMember {
  int index, count;
  Meeting& meeting;

  void meet() const {
    if (count > 1) meeting.wait();
  }
  // This member's part of [0, work): contiguous, the same every time.
  std::int64_t begin(std::int64_t work) const { return work * index / count; }
  std::int64_t end(std::int64_t work) const { return work * (index + 1) / count; }
};

namespace detail {
using MemberFunction = void (*)(void* context, const TeamMember& member);
void run_team(int threads, MemberFunction function, void* context);
}  // namespace detail

// Calls f(member) on `threads` threads at once, the calling one among them. f must not throw: the others
// would wait for ever.
template <class F>
void run_team(int threads, F&& f) {
  using Function = std::remove_reference_t<F>;
  detail::run_team(
      threads, [](void* context, const TeamMember& member) { (*static_cast<Function*>(context))(member); },
      const_cast<std::remove_const_t<Function>*>(&f));
}

}  // namespace tandem
