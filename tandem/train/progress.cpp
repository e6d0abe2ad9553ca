// One write per redraw, so that a bar is never shown half drawn.
#include "tandem/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr double bar_interval_s = 0.1, line_interval_s = 10;
constexpr std::string_view erase_line = "\r\x1b[K";

double done_share(const ProgressState& state) {
  if (state.total <= 0) return 0;
  return std::clamp(static_cast<double>(state.position) / static_cast<double>(state.total), 0.0, 1.0);
}

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e4) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
}

std::string time_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::ceil(seconds)));
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

bool has_rate(const ProgressState& state) {
  return std::isfinite(state.samples_per_second) && state.samples_per_second > 0;
}

bool has_time_left(const ProgressState& state) {
  const double seconds = seconds_left(state);
  return std::isfinite(seconds) && seconds < 1e8;  // longer estimates are meaningless
}

std::string head_text(const ProgressState& state) {
  return state.phase ? std::string(state.phase) : fmt::format("Epoch {}/{}", state.epoch, state.epochs);
}

int stderr_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string repeat(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

double seconds_left(const ProgressState& state) {
  if (!has_rate(state)) return std::numeric_limits<double>::quiet_NaN();
  const double this_epoch = static_cast<double>(std::max<std::int64_t>(state.total - state.position, 0));
  const double later_epochs =
      static_cast<double>(std::max(state.epochs - state.epoch, 0)) * static_cast<double>(state.total);
  return (this_epoch + later_epochs) / state.samples_per_second;
}

std::string progress_bar_text(const ProgressState& state, const TextStyle& style) {
  constexpr int min_bar = 8, max_bar = 40;
  const std::string head = head_text(state) + " ";
  std::string tail = fmt::format(" {:3.0f} %", std::floor(100 * done_share(state)));
  std::vector<std::string> parts;
  if (has_rate(state)) parts.push_back(fmt::format("  {}/s", rate_text(state.samples_per_second)));
  if (std::isfinite(state.loss)) parts.push_back(fmt::format("  loss {:.4f}", state.loss));
  if (has_time_left(state)) parts.push_back(fmt::format("  {} left", time_text(seconds_left(state))));
  const int fixed = display_width(head) + display_width(tail);
  int room = style.width - fixed;
  for (const std::string& part : parts) {
    if (room - display_width(part) < min_bar) break;
    tail += part;
    room -= display_width(part);
  }
  if (room < min_bar) return shorten(head + tail.substr(1), std::max(style.width, 0));
  const int length = std::min(room, max_bar);
  const int full = static_cast<int>(done_share(state) * length);
  return head + colorize(repeat("━", full), Tone::good, style) +
         colorize(repeat("─", length - full), Tone::faint, style) + tail;
}

std::string progress_line_text(const ProgressState& state) {
  std::string line =
      fmt::format("{}: {} of {} samples ({:.0f} %)", head_text(state), format_count(state.position),
                  format_count(state.total), std::floor(100 * done_share(state)));
  if (has_rate(state)) line += fmt::format(", {} samples/s", rate_text(state.samples_per_second));
  if (std::isfinite(state.loss)) line += fmt::format(", loss {:.4f}", state.loss);
  if (has_time_left(state)) line += fmt::format(", {} left", time_text(seconds_left(state)));
  return line + ".";
}

ProgressOutput stderr_progress() {
  const char* terminal = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  ProgressOutput output;
  output.terminal = ::isatty(STDERR_FILENO) != 0 && !(terminal && std::string_view(terminal) == "dumb");
  output.color = output.terminal && (no_color == nullptr || *no_color == '\0');
  output.width = stderr_width;
  output.write = [](std::string_view text) { write_message(text); };
  return output;
}

Progress::Progress(ProgressOutput output) : output_(std::move(output)) {}

Progress::~Progress() {
  clear();
}

void Progress::update(const ProgressState& state) {
  update(state, std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void Progress::update(const ProgressState& state, double now_seconds) {
  if (!last_write_ && !output_.terminal)
    last_write_ = now_seconds;  // a run shorter than the interval logs nothing
  const double interval = output_.terminal ? bar_interval_s : line_interval_s;
  if (last_write_ && now_seconds - *last_write_ < interval) return;
  last_write_ = now_seconds;
  if (!output_.terminal) {
    output_.write(progress_line_text(state) + "\n");
    return;
  }
  // The last column stays free: some terminals wrap as soon as it is filled.
  const TextStyle style{.width = output_.width() - 1, .color = output_.color};
  output_.write(std::string(erase_line) + progress_bar_text(state, style));
  bar_visible_ = true;
}

void Progress::clear() {
  if (bar_visible_) output_.write(erase_line);
  bar_visible_ = false;
}

RenderObserver observe_rendering(std::function<void(const ProgressState&)> on_progress,
                                 const RenderObserver::Timing& timing) {
  if (!on_progress) return RenderObserver({});
  const Stopwatch watch;
  return RenderObserver(
      [=](std::int64_t done, std::int64_t total) {
        const double seconds = watch.elapsed_ms() / 1e3;
        on_progress({.phase = "Rendering",
                     .position = done,
                     .total = total,
                     .samples_per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0});
      },
      timing);
}

RenderObserver observe_rendering(Progress& progress) {
  return observe_rendering([&progress](const ProgressState& state) { progress.update(state); });
}

}  // namespace tandem
