// A program that fills the whole terminal: alternate screen, keys without Enter, size, signals. The terminal
// is put back when the object ends, also by an exception, and when the program is suspended or told to end.
#pragma once

#include <termios.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "tandem/process/descriptor.h"

namespace tandem {

struct ScreenSize {
  int columns = 80, rows = 24;

  bool operator==(const ScreenSize&) const = default;
};

// Of the terminal on standard output; without one, 80 x 24.
ScreenSize terminal_size();

enum class Key { none, up, down, left, right, tab, back_tab, other };

struct ScreenEvent {
  Key key = Key::none;
  char character = 0;   // of Key::other
  bool redraw = false;  // the size has changed, or the program was suspended
  int stop_signal = 0;  // SIGINT, SIGTERM, SIGHUP or SIGQUIT; the program should end
};

// At most one per process.
class TerminalScreen {
 public:
  // Standard output must be a terminal. Keys come from standard input, if that is one.
  TerminalScreen();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  // Shows the lines, no more than fit, and writes only those that differ from the ones before. False if the
  // terminal is gone.
  bool show(const std::vector<std::string>& lines);
  // Forgets what is shown, so that the next show() writes all lines.
  void forget() { shown_.clear(); }

  // Waits for a key, a signal or a change of size, at most that long. Nothing has happened: all fields are
  // those of a new ScreenEvent.
  ScreenEvent wait(int timeout_ms);

 private:
  void enter();
  void leave() noexcept;
  void suspend();

  struct Caught {
    int signal;
    struct sigaction previous;
  };
  std::array<Caught, 6> caught_{};
  Descriptor wake_read_, wake_write_;  // a signal writes a byte
  std::optional<termios> before_;      // of standard input, if it is a terminal
  std::vector<std::string> shown_;
  std::string pending_;  // characters that were read and not returned
};

// Takes the first key from characters as terminals send them. Nothing if they are the begin of a longer
// sequence and `is_complete` is false.
std::optional<ScreenEvent> take_key(std::string& characters, bool is_complete);

}  // namespace tandem
