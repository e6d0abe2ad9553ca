#include "tandem/train/watch/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

#include "tandem/core/check.h"
#include "tandem/process/terminal_screen.h"
#include "tandem/train/watch/run_reader.h"
#include "tandem/train/watch/watch_view.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int poll_ms = 250;

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The runs of the options, in their order. New ones are added, none is removed.
class WatchedRuns {
 public:
  explicit WatchedRuns(const WatchOptions& options) : options_(options) {
    add(find_runs(options.paths, options.max_runs));
  }

  // Looks for new runs. What cannot be read at the moment adds none.
  bool find_new() {
    const std::size_t before = readers_.size();
    for (const std::string& path : options_.paths) {
      if (is_run_folder(path)) continue;
      try {
        add(find_runs(std::vector{path}, options_.max_runs));
      } catch (const Error&) {
      }
    }
    return readers_.size() != before;
  }

  // Reads a part of what is new.
  bool poll() {
    bool changed = false;
    for (const auto& reader : readers_) changed = reader->poll(unix_seconds()) || changed;
    return changed;
  }
  bool has_more() const {
    return std::ranges::any_of(readers_, [](const auto& reader) { return reader->has_more(); });
  }
  void poll_all() {
    do poll();
    while (has_more());
  }

  const std::vector<std::unique_ptr<RunReader>>& readers() const { return readers_; }
  std::vector<const WatchedRun*> runs() const {
    std::vector<const WatchedRun*> all;
    for (const auto& reader : readers_) all.push_back(&reader->run());
    return all;
  }

 private:
  void add(const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders)
      if (std::ranges::none_of(readers_, [&](const auto& reader) { return reader->folder() == folder; }))
        readers_.push_back(std::make_unique<RunReader>(folder));
  }

  const WatchOptions& options_;
  std::vector<std::unique_ptr<RunReader>> readers_;
};

// Whether the key ends the program.
bool apply_key(const ScreenEvent& event, std::size_t runs, WatchView& view) {
  const auto select = [&](std::size_t step) { view.selected = (view.selected + step) % runs; };
  switch (event.key) {
    case Key::down:
    case Key::right:
    case Key::tab:
      select(1);
      return false;
    case Key::up:
    case Key::left:
    case Key::back_tab:
      select(runs - 1);
      return false;
    case Key::none:
      return false;
    case Key::other:
      break;
  }
  switch (event.character) {
    case 'q':
    case 'Q':
      return true;
    case '+':
    case '=':
      view.zoom = std::min(view.zoom + 1, max_zoom);
      return false;
    case '-':
    case '_':
      view.zoom = std::max(view.zoom - 1, 0);
      return false;
    case 'l':
      view.log_axis = !view.log_axis;
      return false;
    case 's':
      view.by_epoch = !view.by_epoch;
      return false;
    case 'o':
      view.overlay = !view.overlay && runs > 1;
      return false;
    case '?':
    case 'h':
      view.help = !view.help;
      return false;
    default:
      return false;
  }
}

}  // namespace

bool is_utf8_locale() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

int watch_on_terminal(const WatchOptions& options) {
  WatchedRuns runs(options);
  runs.poll();
  TerminalScreen screen;
  WatchView view{.style = options.style};
  constexpr int redraw_ms = 1000, find_ms = 2000;  // how long a run is silent is shown
  int since_drawn_ms = redraw_ms, since_found_ms = 0;
  while (true) {
    if (since_drawn_ms >= redraw_ms) {
      const ScreenSize size = terminal_size();
      view.width = size.columns;
      view.height = size.rows;
      view.now = unix_seconds();
      if (!screen.show(watch_frame(runs.runs(), view))) return SIGHUP;
      since_drawn_ms = 0;
    }
    const int timeout_ms = runs.has_more() ? 0 : poll_ms;
    const ScreenEvent event = screen.wait(timeout_ms);
    if (event.stop_signal != 0) return event.stop_signal;
    if (event.key != Key::none || event.redraw) {
      if (event.key == Key::other && event.character == 'r') screen.forget();
      if (apply_key(event, runs.readers().size(), view)) return 0;
      since_drawn_ms = redraw_ms;
      continue;
    }
    since_drawn_ms += timeout_ms;
    since_found_ms += timeout_ms;
    bool changed = runs.poll();
    if (since_found_ms >= find_ms) {
      changed = runs.find_new() || changed;
      since_found_ms = 0;
    }
    if (changed) since_drawn_ms = redraw_ms;
  }
}

bool watch_as_lines(const WatchOptions& options) {
  WatchedRuns runs(options);
  const bool several = runs.readers().size() > 1;
  std::vector<bool> told(runs.readers().size());
  const auto print = [&](const WatchedRun& run, const std::string& line) {
    const std::string text = (several ? run.name + ": " : std::string()) + line;
    fmt::print("{}\n", options.style.utf8 ? text : to_ascii(text));
    std::fflush(stdout);
  };
  while (true) {
    bool has_more = false;
    for (std::size_t i = 0; i < told.size(); ++i) {
      if (told[i]) continue;
      RunReader& reader = *runs.readers()[i];
      const WatchedRun& run = reader.run();
      reader.poll(unix_seconds(),
                  [&](const EpochRecord& record) { print(run, watch_epoch_line(run, record)); });
      has_more = has_more || reader.has_more();
      // What was written between reading the log and the status is read once more.
      if (run.has_ended() && !reader.has_more() &&
          !reader.poll(unix_seconds(),
                       [&](const EpochRecord& record) { print(run, watch_epoch_line(run, record)); })) {
        for (const std::string& warning : run.status.warnings) print(run, "Warning: " + warning);
        print(run, watch_end_line(run));
        told[i] = true;
      }
    }
    if (std::ranges::find(told, false) == told.end() || std::ferror(stdout))
      return std::ranges::all_of(
          runs.readers(), [](const auto& reader) { return reader->run().phase == RunPhase::finished; });
    if (!has_more) std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
  }
}

void watch_once(const WatchOptions& options) {
  WatchedRuns runs(options);
  runs.poll_all();
  const ScreenSize size = terminal_size();
  const WatchView view{
      .width = size.columns, .height = size.rows, .style = options.style, .now = unix_seconds()};
  for (const std::string& line : watch_frame(runs.runs(), view)) fmt::print("{}\n", line);
}

}  // namespace tandem
