// pause_cpu: tells the CPU that this thread waits in a loop.
#pragma once

namespace tandem {

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tandem
