// Code whose child processes run as root without the capabilities to become another user, as in a container
// with --user 0 --cap-drop ALL.
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <thread>

namespace tandem {

inline bool can_drop_capabilities() {
  return ::geteuid() == 0 && ::prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) == 1;
}

// Runs f() in a thread of its own: the bounding set belongs to a thread and cannot be widened again.
template <class F>
void without_capabilities(F&& f) {
  std::thread([&f] {
    for (const int capability : {CAP_SETUID, CAP_SETGID}) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    f();
  }).join();
}

}  // namespace tandem
