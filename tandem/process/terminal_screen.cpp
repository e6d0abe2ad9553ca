#include "tandem/process/terminal_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> suspended{false}, resized{false};
std::atomic<int> wake{-1};

extern "C" void tandem_on_screen_signal(int signal) {
  if (signal == SIGWINCH)
    resized.store(true);
  else if (signal == SIGTSTP)
    suspended.store(true);
  else
    stop.store(signal);
  const int error = errno;
  (void)!::write(wake.load(), "", 1);  // a full pipe wakes as well
  errno = error;
}

// False if the terminal is gone.
bool write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, 100);
      if (stop.load() != 0) return false;
      continue;
    }
    if (written < 0 && errno == EINTR) {
      if (stop.load() != 0) return false;
      continue;
    }
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The other screen, no cursor, no wrapping at the last column.
constexpr std::string_view enter_text = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view leave_text = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

}  // namespace

ScreenSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

TerminalScreen::TerminalScreen()
    : caught_{{{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGQUIT, {}}, {SIGWINCH, {}}, {SIGTSTP, {}}}} {
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, "[terminal] cannot create a pipe");
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  expect(wake.exchange(ends[1]) < 0);
  stop.store(0);
  suspended.store(false);
  resized.store(false);
  for (Caught& caught : caught_) {
    struct sigaction action {};
    action.sa_handler = tandem_on_screen_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(caught.signal, &action, &caught.previous);
    if (caught.previous.sa_handler == SIG_IGN) ::sigaction(caught.signal, &caught.previous, nullptr);
  }
  enter();
}

TerminalScreen::~TerminalScreen() {
  leave();
  for (const Caught& caught : caught_) ::sigaction(caught.signal, &caught.previous, nullptr);
  wake.store(-1);
}

// Signals of the keyboard stay, so that Ctrl-C and Ctrl-Z work as usual.
void TerminalScreen::enter() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_all(enter_text);
  shown_.clear();
}

void TerminalScreen::leave() noexcept {
  write_all(leave_text);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

// Stops this process as if there were no handler; goes on when it is continued.
void TerminalScreen::suspend() {
  leave();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  struct sigaction own {};
  ::sigaction(SIGTSTP, &usual, &own);
  ::raise(SIGTSTP);
  ::sigaction(SIGTSTP, &own, nullptr);
  enter();
}

bool TerminalScreen::show(const std::vector<std::string>& lines) {
  const std::size_t rows = std::min(lines.size(), static_cast<std::size_t>(terminal_size().rows));
  std::string text;
  for (std::size_t i = 0; i < rows; ++i)  // cleared first: after a full line it would take the last character
    if (i >= shown_.size() || shown_[i] != lines[i])
      text += "\x1b[" + std::to_string(i + 1) + ";1H\x1b[2K" + lines[i];
  if (shown_.size() > rows) text += "\x1b[" + std::to_string(rows + 1) + ";1H\x1b[J";
  shown_.assign(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(rows));
  return text.empty() || write_all(text);
}

ScreenEvent TerminalScreen::wait(int timeout_ms) {
  if (auto event = take_key(pending_, false)) return *event;
  std::array<pollfd, 2> ready{{{wake_read_.get(), POLLIN, 0}, {before_ ? STDIN_FILENO : -1, POLLIN, 0}}};
  // The rest of a key's characters comes at once, or it was Esc.
  constexpr int rest_ms = 50;
  const int changed = ::poll(ready.data(), ready.size(), pending_.empty() ? timeout_ms : rest_ms);
  std::array<char, 64> bytes{};
  while (::read(wake_read_.get(), bytes.data(), bytes.size()) > 0) {
  }
  ScreenEvent event{.stop_signal = stop.load()};
  if (event.stop_signal != 0) return event;
  if (suspended.exchange(false)) {
    suspend();
    event.redraw = true;
  }
  event.redraw = resized.exchange(false) || event.redraw;
  if (event.redraw) {
    if (!write_all("\x1b[2J")) event.stop_signal = SIGHUP;
    forget();
    return event;
  }
  if (changed > 0 && (ready[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) pending_.append(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
      event.stop_signal = SIGHUP;  // the terminal was closed
    if (auto key = take_key(pending_, false)) return *key;
  } else if (changed == 0 && !pending_.empty()) {
    if (auto key = take_key(pending_, true)) return *key;
  }
  return event;
}

std::optional<ScreenEvent> take_key(std::string& characters, bool is_complete) {
  if (characters.empty()) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, Key>, 10> sequences{{{"\x1b[A", Key::up},
                                                                        {"\x1bOA", Key::up},
                                                                        {"\x1b[B", Key::down},
                                                                        {"\x1bOB", Key::down},
                                                                        {"\x1b[C", Key::right},
                                                                        {"\x1bOC", Key::right},
                                                                        {"\x1b[D", Key::left},
                                                                        {"\x1bOD", Key::left},
                                                                        {"\x1b[Z", Key::back_tab},
                                                                        {"\t", Key::tab}}};
  for (const auto& [sequence, key] : sequences)
    if (characters.starts_with(sequence)) {
      characters.erase(0, sequence.size());
      return ScreenEvent{.key = key};
    }
  const bool is_escape = characters[0] == '\x1b';
  if (is_escape && characters.size() < 3 && !is_complete) return std::nullopt;
  if (is_escape && characters.size() > 1) {  // of a key that is not known: up to its last character
    const std::size_t end =
        std::find_if(characters.begin() + 2, characters.end(), [](char c) { return c >= '@' && c <= '~'; }) -
        characters.begin();
    characters.erase(0, std::min(end + 1, characters.size()));
    return ScreenEvent{.key = Key::other, .character = '\x1b'};
  }
  const char first = characters[0];
  characters.erase(0, 1);
  return ScreenEvent{.key = Key::other, .character = first};
}

}  // namespace tandem
