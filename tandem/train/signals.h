// Signals as flags that the training loop polls between steps. SIGINT, SIGTERM, SIGHUP (the terminal was
// closed) and SIGPIPE (nobody reads the output any more) request to save and stop, SIGUSR1 to save and
// continue; a second SIGINT ends the process at once, as if there were no handler.
#pragma once

#include <array>
#include <csignal>

namespace tandem {

// Catches the signals during its lifetime, then restores the previous handlers. At most one per process. If
// the process was started with one of them ignored (in the background of a shell, by nohup), it stays
// ignored.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The signal to stop that was received last, or 0. A program that stops because of it should exit with
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
  std::array<Caught, 5> caught_{};
};

}  // namespace tandem
