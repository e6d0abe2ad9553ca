// WideAffinity: when OpenMP binds its threads (OMP_PROC_BIND, OMP_PLACES), the calling thread is bound to one
// CPU, and all threads and processes it starts would inherit that CPU. While a WideAffinity lives, the
// calling thread may run on every CPU of OpenMP's places; what it starts meanwhile keeps that affinity.
#pragma once

#include <sched.h>

namespace tandem {

class WideAffinity {
 public:
  WideAffinity();
  ~WideAffinity();
  WideAffinity(const WideAffinity&) = delete;
  WideAffinity& operator=(const WideAffinity&) = delete;

 private:
  cpu_set_t before_{};
  bool changed_ = false;
};

}  // namespace tandem
