// WideAffinity: where OpenMP was told to bind its threads (OMP_PROC_BIND, OMP_PLACES), the thread that calls
// is bound to one CPU, and all it starts would crowd there. While a WideAffinity lives, the calling thread
// may run on every CPU OpenMP was given, and so may the threads and processes it starts, also afterwards.
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
