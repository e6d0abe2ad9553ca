// The handlers only set flags, because almost nothing else is async-signal-safe. The flags are global because
// a handler has no access to other objects.
#include "tandem/train/signals.h"

#include <atomic>

#include "tandem/core/error.h"

namespace tandem {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> save{false};
std::atomic<bool> watching{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

extern "C" void tandem_on_signal(int signal) {
  if (signal == SIGUSR1)
    save.store(true);
  else
    stop.store(signal);
}

}  // namespace

SignalWatch::SignalWatch()
    : caught_{{{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGPIPE, {}}, {SIGUSR1, {}}}} {
  expect(!watching.exchange(true));
  stop.store(0);
  save.store(false);
  for (Caught& caught : caught_) {
    struct sigaction action {};
    action.sa_handler = tandem_on_signal;
    ::sigemptyset(&action.sa_mask);
    // SA_RESETHAND: a second SIGINT has the default action.
    action.sa_flags = caught.signal == SIGINT ? SA_RESTART | SA_RESETHAND : SA_RESTART;
    ::sigaction(caught.signal, &action, &caught.previous);
    if (caught.previous.sa_handler == SIG_IGN) ::sigaction(caught.signal, &caught.previous, nullptr);
  }
}

SignalWatch::~SignalWatch() {
  for (const Caught& caught : caught_) ::sigaction(caught.signal, &caught.previous, nullptr);
  watching.store(false);
}

int SignalWatch::stop_signal() const {
  return stop.load();
}

bool SignalWatch::consume_save_request() {
  return save.exchange(false);
}

}  // namespace tandem
