// Signals as wishes the training loop asks about between steps. SIGINT and SIGTERM ask to save and stop,
// SIGUSR1 to save and go on; a second SIGINT ends the process at once, as if there were no handler.
#pragma once

#include <array>
#include <csignal>

namespace tandem {

// While it lives, the signals are caught; then the previous handlers are back. One at a time in a process. A
// SIGINT the process was started to ignore (in the background of a shell) stays ignored.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // SIGINT or SIGTERM, whichever came last, or 0. A program that stops because of it exits with 128 + signal.
  int stop_signal() const;
  bool stop_requested() const { return stop_signal() != 0; }

  // Whether SIGUSR1 came since this was last asked.
  bool take_save_request();

 private:
  struct Caught {
    int signal;
    struct sigaction previous;
  };
  std::array<Caught, 3> caught_{};
};

}  // namespace tandem
