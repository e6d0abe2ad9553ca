// Signals as flags that the training loop polls between steps. SIGINT and SIGTERM request to save and stop,
// SIGUSR1 to save and continue; a second SIGINT ends the process at once, as if there were no handler.
#pragma once

#include <array>
#include <csignal>

namespace tandem {

// Catches the signals during its lifetime, then restores the previous handlers. At most one per process. If
// the process was started with SIGINT ignored (in the background of a shell), it stays ignored.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // SIGINT or SIGTERM, whichever was received last, or 0. A program that stops because of it should exit with
  // status 128 + signal.
  int stop_signal() const;
  bool stop_requested() const { return stop_signal() != 0; }

  // Whether SIGUSR1 was received since the last call.
  bool consume_save_request();

 private:
  struct Caught {
    int signal;
    struct sigaction previous;
  };
  std::array<Caught, 3> caught_{};
};

}  // namespace tandem
