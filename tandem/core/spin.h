// Waiting for other threads in a loop.
#pragma once

#include <thread>

namespace tandem {

// Tells the CPU that this thread waits in a loop.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once is_done() is true. Spins for tens of microseconds, then yields the CPU.
template <class F>
void spin_until(const F& is_done) {
  constexpr int max_spins = 4000;
  for (int spins = 0; !is_done(); ++spins) {
    if (spins < max_spins)
      pause_cpu();
    else
      std::this_thread::yield();
  }
}

}  // namespace tandem
