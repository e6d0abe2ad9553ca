#include "tandem/train/watch/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tandem/report/cell_plot.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Lines = std::vector<StyledLine>;

constexpr int min_plot_height = 6, two_plots_width = 60, four_plots_height = 44;

Ink ink_of(RunPhase phase) {
  switch (phase) {
    case RunPhase::running:
    case RunPhase::finished:
      return Ink::good;
    case RunPhase::starting:
    case RunPhase::stopped:
      return Ink::warning;
    case RunPhase::failed:
    case RunPhase::lost:
    case RunPhase::gone:
      return Ink::bad;
  }
  return Ink::plain;
}

// ---- figures

std::string loss_text(double loss) {
  return std::isfinite(loss) ? format_decimals(loss, 4) : "–";
}

std::string percent_text(double share) {
  return std::abs(share) < 1e4 ? fmt::format("{:.2f} %", 100 * share) : "–";
}

std::string memory_text(double mb) {
  return mb >= 1e4 ? fmt::format("{:.1f} GB", mb / 1e3) : fmt::format("{:.0f} MB", mb);
}

std::string time_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.0f} s", std::ceil(seconds)) : format_duration(std::ceil(seconds));
}

std::string epoch_text(const WatchedRun& run) {
  const std::int64_t epoch = std::max(run.epochs_done, run.last_step.epoch);
  if (run.status.epochs == 0) return epoch > 0 ? format_count(epoch) : "–";
  return fmt::format("{}/{}", format_count(epoch), format_count(run.status.epochs));
}

const std::string& validation_name(const WatchedRun& run) {
  static const std::string usual = "validation";
  return run.status.validated_on.empty() ? usual : run.status.validated_on;
}

// "4 s ago", for a run that goes on and has not written for a while.
std::string silence_text(const WatchedRun& run, double now) {
  constexpr double usual_s = 15;
  if (run.has_ended() || run.changed_at == 0 || now - run.changed_at < usual_s) return {};
  return fmt::format("nothing new for {}", time_text(std::floor(now - run.changed_at)));
}

// Why it ended, for those that did not finish.
std::string end_text(const WatchedRun& run) {
  switch (run.phase) {
    case RunPhase::failed:
      return run.status.message;
    case RunPhase::lost:
      return "its process is gone; a run that was saved can be resumed";
    case RunPhase::gone:
      return "the folder is gone; what was read before is shown";
    default:
      return {};
  }
}

// ---- parts of the frame

// Words of the line that fit, from the left; each with its separator.
class Words {
 public:
  explicit Words(int width, std::string_view separator = "  ") : width_(width), separator_(separator) {}

  void add(const std::string& text, Ink ink = Ink::plain) {
    if (text.empty()) return;
    const int columns = display_width(text) + (line_.width() > 0 ? display_width(separator_) : 0);
    if (line_.width() > 0 && line_.width() + columns > width_) return;
    if (line_.width() > 0) line_.add(separator_, Ink::faint);
    line_.add(text, ink);
  }
  const StyledLine& line() const { return line_; }

 private:
  int width_;
  std::string_view separator_;
  StyledLine line_;
};

StyledLine name_line(const WatchedRun& run, const WatchView& view) {
  const std::string phase(name_of(run.phase));
  const int room = view.width - display_width(phase) - 2;
  StyledLine line(shorten(run.name, std::max(room, 8)), Ink::strong);
  line.add("  ").add(phase, ink_of(run.phase));
  const std::string silence = silence_text(run, view.now);
  if (!silence.empty() && line.width() + 2 + display_width(silence) <= view.width)
    line.add("  ").add(silence, Ink::warning);
  return line;
}

StyledLine setup_line(const WatchedRun& run, int width) {
  Words words(width, " · ");
  words.add(run.data);
  words.add(run.model);
  if (!run.batch_size.empty()) words.add("batch size " + run.batch_size);
  words.add(run.status.device);
  words.add(run.status.engine);
  return words.line();
}

// "Epoch 3/15 ━━━━━──── 42 %  step 1,234  0:12 left".
StyledLine progress_line(const WatchedRun& run, int width) {
  constexpr int min_bar = 8, max_bar = 60;
  const double share = run.done_share();
  StyledLine head("Epoch " + epoch_text(run));
  if (run.total_steps > 0) head = StyledLine(fmt::format("Step {}/{}", run.last_step.step, run.total_steps));
  Words tail(width - head.width() - min_bar - 2);
  if (std::isfinite(share)) tail.add(fmt::format("{:.0f} %", std::floor(100 * share)));
  if (run.last_step.step > 0 && run.total_steps == 0) tail.add("step " + format_count(run.last_step.step));
  const double left = run.seconds_left();
  if (std::isfinite(left) && left < 1e8) tail.add(time_text(left) + " left");
  const int room = width - head.width() - tail.line().width() - 2;
  head.add(" ");
  if (std::isfinite(share) && room >= min_bar) {
    const int length = std::min(room, max_bar), full = static_cast<int>(share * length);
    for (int i = 0; i < length; ++i) head.add(i < full ? "━" : "─", i < full ? Ink::good : Ink::faint);
    head.add(" ");
  }
  return head.add(tail.line());
}

StyledLine speed_line(const WatchedRun& run, int width) {
  const StepRecord& step = run.last_step;
  Words words(width);
  const double rate =
      std::isfinite(step.samples_per_second) ? step.samples_per_second : run.last_epoch.samples_per_second;
  if (std::isfinite(rate)) words.add(format_rounded(rate) + " images/s");
  double waited = step.waited_share;
  if (!std::isfinite(waited)) waited = run.last_epoch.waited_seconds / run.last_epoch.seconds;
  if (std::isfinite(waited)) {
    constexpr double high = 0.2;
    words.add(fmt::format("waiting for images {:.0f} %", 100 * waited),
              waited > high ? Ink::warning : Ink::plain);
  }
  if (std::isfinite(step.learning_rate)) words.add(fmt::format("learning rate {:.3g}", step.learning_rate));
  return words.line();
}

// What the run takes of its machine; empty if that is not known.
StyledLine machine_line(const WatchedRun& run, int width) {
  const StepRecord& step = run.last_step;
  Words words(width);
  if (std::isfinite(step.cpu_cores)) words.add(fmt::format("CPU {:.1f} cores", step.cpu_cores));
  if (std::isfinite(step.memory_mb)) words.add("memory " + memory_text(step.memory_mb));
  if (std::isfinite(step.gpu_share)) words.add(fmt::format("GPU {:.0f} %", 100 * step.gpu_share));
  if (std::isfinite(step.device_memory_mb)) words.add("GPU memory " + memory_text(step.device_memory_mb));
  if (std::isfinite(step.gpu_memory_mb))
    words.add(fmt::format("of all processes {}", memory_text(step.gpu_memory_mb)));
  return words.line();
}

StyledLine best_line(const WatchedRun& run, int width) {
  const EpochRecord& best = run.best_epoch;
  Words words(width);
  if (best.epoch == 0) {
    words.add("no epoch is finished yet", Ink::faint);
    return words.line();
  }
  words.add(fmt::format("Best {} accuracy {}", validation_name(run), percent_text(best.val_accuracy)),
            Ink::strong);
  words.add(fmt::format("epoch {}", best.epoch));
  if (run.status.test_accuracy && run.status.tested_on != validation_name(run))
    words.add(fmt::format("{} accuracy {}", run.status.tested_on, percent_text(*run.status.test_accuracy)),
              Ink::strong);
  words.add(fmt::format("loss {}", loss_text(best.val_loss)));
  for (const NamedFigure& metric : best.metrics)
    words.add(fmt::format("{} {}", metric.name, format_number(metric.value)));
  return words.line();
}

// The end, and the last warnings, newest last. The last one that has room may be cut.
Lines notes(const WatchedRun& run, int width, std::size_t max_lines) {
  std::vector<std::pair<std::string, Ink>> newest_first;
  if (const std::string end = end_text(run); !end.empty()) newest_first.emplace_back(end, Ink::bad);
  if (run.unreadable_rows > 0)
    newest_first.emplace_back(
        fmt::format("{} row{} of the logs cannot be read and {} left out", format_count(run.unreadable_rows),
                    run.unreadable_rows == 1 ? "" : "s", run.unreadable_rows == 1 ? "is" : "are"),
        Ink::warning);
  for (auto warning = run.status.warnings.rbegin(); warning != run.status.warnings.rend(); ++warning)
    newest_first.emplace_back("Warning: " + *warning, Ink::warning);
  Lines lines;
  for (const auto& [text, ink] : newest_first) {
    const std::size_t room = max_lines - lines.size();
    if (room == 0) break;
    std::vector<std::string> parts = wrap(text, std::max(width, 1));
    if (parts.size() > room) {
      parts[room - 1] = shorten(parts[room - 1] + " " + parts[room], width);
      parts.resize(room);
    }
    Lines added;
    for (const std::string& part : parts) added.emplace_back(part, ink);
    lines.insert(lines.begin(), added.begin(), added.end());
  }
  return lines;
}

StyledLine key_line(std::size_t runs, const WatchView& view) {
  Words words(view.width);
  words.add("q quit", Ink::faint);
  if (runs > 1) words.add("tab next run", Ink::faint);
  if (runs > 1) words.add(view.overlay ? "o one run" : "o overlay", Ink::faint);
  words.add(view.by_epoch ? "s by step" : "s by epoch", Ink::faint);
  words.add(view.log_axis ? "l linear axis" : "l log axis", Ink::faint);
  words.add(view.zoom > 0 ? fmt::format("+/- zoom {}x", 1 << view.zoom) : "+/- zoom", Ink::faint);
  words.add(view.help ? "? close help" : "? help", Ink::faint);
  return words.line();
}

// ---- the list of runs

// The end of the text, which tells runs apart, after an ellipsis where it is too long.
std::string shorten_front(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  const auto is_inside = [&] { return !text.empty() && (text.front() & 0xC0) == 0x80; };  // a character
  do text.remove_prefix(text.empty() ? 0 : 1);
  while (is_inside() || (!text.empty() && display_width(text) + 1 > width));
  return "…" + std::string(text);
}

constexpr std::array curve_inks{Ink::first, Ink::second, Ink::third, Ink::fourth, Ink::fifth, Ink::sixth};

// The runs around the selected one that are shown: [first, first + rows).
struct Window {
  std::size_t first, rows;
};

Window shown_runs(std::size_t runs, const WatchView& view) {
  std::size_t max_rows = static_cast<std::size_t>(std::max(view.height / 4, 2));
  if (view.overlay) max_rows = std::min(max_rows, curve_inks.size());
  const std::size_t rows = std::min(runs, max_rows);
  return {std::min(view.selected - std::min(view.selected, rows / 2), runs - rows), rows};
}

// With an overlay, the names have the numbers and colors of their curves.
Lines run_list(std::span<const WatchedRun* const> runs, const WatchView& view) {
  const auto [first, rows] = shown_runs(runs.size(), view);
  constexpr std::array<int, 6> columns{10, 11, 9, 9, 10, 11};  // after the name
  int figures = 0;
  std::size_t shown = 0;  // columns that fit
  constexpr int min_name = 16;
  while (shown < columns.size() && figures + columns[shown] + min_name + 2 <= view.width)
    figures += columns[shown++];
  const int name_width = std::max(view.width - figures - 2, 1);
  const auto line = [&](const StyledLine& label, const std::string& name,
                        const std::array<std::string, 6>& cells, bool selected, Ink name_ink, Ink phase_ink) {
    StyledLine text(selected ? "▸ " : "  ", Ink::strong);
    text.add(label);
    text.add(shorten_front(name, name_width - label.width()), name_ink).pad(name_width + 2);
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string cell = shorten(cells[i], columns[i] - 1);
      if (i == 0)
        text.add(" ").add(cell, phase_ink).pad(name_width + 2 + columns[0]);
      else
        text.pad(text.width() + columns[i] - display_width(cell)).add(cell, name_ink);
    }
    return text;
  };
  Lines lines;
  const std::string title =
      rows < runs.size() ? fmt::format("run ({}-{} of {})", first + 1, first + rows, runs.size()) : "run";
  lines.push_back(line(StyledLine(view.overlay ? "  " : ""), title,
                       {"state", "epoch", "loss", "accuracy", "best", "images/s"}, false, Ink::faint,
                       Ink::faint));
  for (std::size_t i = first; i < first + rows; ++i) {
    const WatchedRun& run = *runs[i];
    const double loss = std::isfinite(run.last_step.loss) ? run.last_step.loss : run.last_epoch.train_loss;
    const double rate = run.last_step.samples_per_second;
    StyledLine label;
    if (view.overlay) label.add(fmt::format("{} ", i - first + 1), curve_inks[i - first]);
    lines.push_back(
        line(label, run.name,
             {std::string(name_of(run.phase)), epoch_text(run), loss_text(loss),
              percent_text(run.last_epoch.val_accuracy), percent_text(run.best_epoch.val_accuracy),
              std::isfinite(rate) ? format_rounded(rate) : "–"},
             i == view.selected, i == view.selected ? Ink::strong : Ink::plain, ink_of(run.phase)));
  }
  return lines;
}

// ---- curves

std::vector<CurvePoint> scaled(const Curve& curve, double factor) {
  std::vector<CurvePoint> points = curve.points();
  for (CurvePoint& point : points) point.x *= factor;
  return points;
}

struct Part {
  double low, high;
  double steps_per_epoch;  // factor from epochs to x; 0: epochs cannot be placed
};

// The x that are shown.
Part shown_part(const WatchedRun& run, const WatchView& view, bool by_epoch) {
  const auto per_epoch = static_cast<double>(by_epoch ? 1 : run.steps_per_epoch());
  double first = by_epoch ? 1 : 0, last = static_cast<double>(run.epochs_done) * per_epoch;
  if (!by_epoch) last = std::max(last, static_cast<double>(run.last_step.step));
  last = std::max(last, first + 1);
  return {last - (last - first) / std::exp2(view.zoom), last, per_epoch};
}

CellPlot base_plot(const std::string& name, const Part& part, bool by_epoch) {
  CellPlot plot;
  plot.title.add(name, Ink::strong);
  plot.x_label = by_epoch ? "epoch" : "step";
  plot.x_low = part.low;
  plot.x_high = part.high;
  return plot;
}

CellPlot loss_plot(const WatchedRun& run, const WatchView& view, bool by_epoch) {
  const Part part = shown_part(run, view, by_epoch);
  CellPlot plot = base_plot("Loss", part, by_epoch);
  plot.log = view.log_axis;
  const double train = by_epoch ? run.last_epoch.train_loss : run.last_step.loss;
  plot.title.add("  train " + loss_text(train), Ink::first);
  plot.title.add("  val " + loss_text(run.last_epoch.val_loss), Ink::second);
  plot.curves.push_back(
      {"train", Ink::first, by_epoch ? run.train_loss.points() : run.steps.of(&StepRecord::loss).points()});
  if (part.steps_per_epoch > 0)
    plot.curves.push_back({"val", Ink::second, scaled(run.val_loss, part.steps_per_epoch)});
  return plot;
}

CellPlot accuracy_plot(const WatchedRun& run, const WatchView& view, bool by_epoch) {
  const Part part = shown_part(run, view, by_epoch);
  CellPlot plot = base_plot("Accuracy", part, by_epoch);
  plot.unit = Unit::share;
  plot.title.add("  train " + percent_text(run.last_epoch.train_accuracy), Ink::first);
  plot.title.add("  val " + percent_text(run.last_epoch.val_accuracy), Ink::second);
  if (part.steps_per_epoch == 0) return plot;
  plot.curves.push_back({"train", Ink::first, scaled(run.train_accuracy, part.steps_per_epoch)});
  plot.curves.push_back({"val", Ink::second, scaled(run.val_accuracy, part.steps_per_epoch)});
  return plot;
}

CellPlot step_plot(const std::string& name, double StepRecord::*figure, const WatchedRun& run,
                   const WatchView& view) {
  CellPlot plot = base_plot(name, shown_part(run, view, false), false);
  plot.curves.push_back({"", Ink::first, run.steps.of(figure).points()});
  return plot;
}

Lines side_by_side(const std::vector<CellPlot>& plots, const WatchView& view, int height) {
  Lines lines(static_cast<std::size_t>(height));
  const int count = static_cast<int>(plots.size());
  for (int i = 0; i < count; ++i) {
    const int begin = i * view.width / count, end = (i + 1) * view.width / count;
    const Lines plot = draw_cell_plot(plots[static_cast<std::size_t>(i)],
                                      end - begin - (i + 1 < count ? 1 : 0), height, view.style.utf8);
    for (std::size_t row = 0; row < lines.size(); ++row) lines[row].pad(begin).add(plot[row]);
  }
  return lines;
}

Lines curves(const WatchedRun& run, const WatchView& view, int height) {
  // Without steps, as in runs of the library alone, only epochs can be shown.
  const bool by_epoch = (view.by_epoch && run.total_steps == 0) || run.steps.of(&StepRecord::loss).empty();
  std::vector<CellPlot> first{loss_plot(run, view, by_epoch)};
  if (view.width >= two_plots_width && run.total_steps == 0)
    first.push_back(accuracy_plot(run, view, by_epoch));
  if (height < four_plots_height || view.width < two_plots_width || run.steps.of(&StepRecord::loss).empty())
    return side_by_side(first, view, height);
  const int below = height / 3;
  Lines lines = side_by_side(first, view, height - below - 1);
  lines.emplace_back();
  const Lines more = side_by_side({step_plot("Images/s", &StepRecord::samples_per_second, run, view),
                                   step_plot("Learning rate", &StepRecord::learning_rate, run, view)},
                                  view, below);
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

// A curve of each shown run, the selected one over the others. Numbers in the list name them.
Lines overlay(std::span<const WatchedRun* const> runs, const WatchView& view, int height) {
  const auto [first, rows] = shown_runs(runs.size(), view);
  const std::span<const WatchedRun* const> shown = runs.subspan(first, rows);
  const bool by_epoch = view.by_epoch || std::ranges::any_of(shown, [](const WatchedRun* run) {
                          return run->steps.of(&StepRecord::loss).empty();
                        });
  Part part{by_epoch ? 1.0 : 0.0, 0, 1};
  for (const WatchedRun* const run : shown)
    part.high = std::max(part.high, shown_part(*run, {.zoom = 0}, by_epoch).high);
  part.low = part.high - (part.high - part.low) / std::exp2(view.zoom);
  CellPlot loss = base_plot(by_epoch ? "Validation loss" : "Training loss", part, by_epoch);
  loss.log = view.log_axis;
  CellPlot accuracy = base_plot("Validation accuracy", part, by_epoch);
  accuracy.unit = Unit::share;
  const auto add = [&](std::size_t i) {
    const WatchedRun& run = *shown[i];
    const std::string label = fmt::format("{}", i + 1);
    const double factor = by_epoch ? 1 : static_cast<double>(run.steps_per_epoch());
    loss.curves.push_back(
        {label, curve_inks[i], by_epoch ? run.val_loss.points() : run.steps.of(&StepRecord::loss).points()});
    if (factor > 0) accuracy.curves.push_back({label, curve_inks[i], scaled(run.val_accuracy, factor)});
  };
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (first + i != view.selected) add(i);
  add(view.selected - first);
  if (height < min_plot_height) return {};
  return side_by_side(view.width >= two_plots_width ? std::vector{loss, accuracy} : std::vector{loss}, view,
                      height);
}

Lines help_lines() {
  constexpr std::array<std::array<std::string_view, 2>, 9> keys{
      {{"q", "quit; the run goes on"},
       {"tab, arrows", "another run of the list"},
       {"o", "curves of several runs in one plot, or of one"},
       {"+ and -", "zoom to the last part of the curves, and back"},
       {"s", "curves by step or by epoch"},
       {"l", "logarithmic or linear axis of the loss"},
       {"r", "draw the screen again"},
       {"Ctrl-Z", "suspend; fg comes back"},
       {"?", "this help"}}};
  Lines lines{StyledLine()};
  for (const auto& [key, meaning] : keys)
    lines.push_back(StyledLine("  ").add(key, Ink::strong).pad(16).add(meaning));
  lines.emplace_back();
  lines.emplace_back("  By step, the training loss is a mean over about a second; accuracies are",
                     Ink::faint);
  lines.emplace_back("  of whole epochs. Best is the epoch with the highest validation accuracy.",
                     Ink::faint);
  return lines;
}

// What is most important, for terminals without room for curves.
Lines small_frame(const WatchedRun& run, const WatchView& view) {
  Lines lines{name_line(run, view), StyledLine("Epoch " + epoch_text(run)),
              StyledLine("loss " + loss_text(std::isfinite(run.last_step.loss) ? run.last_step.loss
                                                                               : run.last_epoch.train_loss)),
              StyledLine("accuracy " + percent_text(run.last_epoch.val_accuracy)),
              StyledLine("best " + percent_text(run.best_epoch.val_accuracy))};
  if (view.height == 1)
    lines = {
        StyledLine(fmt::format("{} {} loss {} best {}", name_of(run.phase), epoch_text(run),
                               loss_text(run.last_step.loss), percent_text(run.best_epoch.val_accuracy)))};
  return lines;
}

Lines full_frame(std::span<const WatchedRun* const> runs, const WatchView& view) {
  const WatchedRun& run = *runs[view.selected];
  Lines lines;
  const auto append = [&](const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); };
  if (runs.size() > 1) {
    append(run_list(runs, view));
    lines.emplace_back();
  }
  if (view.overlay && !view.help) {
    append(overlay(runs, view, view.height - static_cast<int>(lines.size()) - 1));
    lines.resize(static_cast<std::size_t>(view.height - 1));
    lines.push_back(key_line(runs.size(), view));
    return lines;
  }
  lines.push_back(name_line(run, view));
  lines.push_back(setup_line(run, view.width));
  lines.push_back(progress_line(run, view.width));
  lines.push_back(speed_line(run, view.width));
  if (StyledLine machine = machine_line(run, view.width); machine.width() > 0) lines.push_back(machine);
  lines.push_back(best_line(run, view.width));
  const Lines last = notes(run, view.width, view.height >= 40 ? 6 : view.height >= 20 ? 3 : 1);
  const int height = view.height - static_cast<int>(lines.size() + last.size()) - 1;
  if (view.help)
    append(help_lines());
  else if (height >= min_plot_height)
    append(curves(run, view, height));
  lines.resize(static_cast<std::size_t>(std::max(view.height - 1 - static_cast<int>(last.size()), 0)));
  append(last);
  lines.push_back(key_line(runs.size(), view));
  return lines;
}

}  // namespace

std::vector<std::string> watch_frame(std::span<const WatchedRun* const> runs, const WatchView& wanted) {
  WatchView view = wanted;
  view.width = std::max(view.width, 1);
  view.height = std::max(view.height, 1);
  constexpr int min_width = 30, min_height = 12;
  Lines lines;
  if (runs.empty()) {
    lines.emplace_back("no runs");
  } else {
    view.selected = std::min(view.selected, runs.size() - 1);
    view.overlay = view.overlay && runs.size() > 1;
    const bool is_small = view.width < min_width || view.height < min_height;
    lines = is_small ? small_frame(*runs[view.selected], view) : full_frame(runs, view);
  }
  lines.resize(static_cast<std::size_t>(view.height));
  std::vector<std::string> texts;
  for (const StyledLine& line : lines) {
    texts.push_back(line.to_text(view.width, view.style));
    texts.back().resize(texts.back().find_last_not_of(' ') + 1);
  }
  return texts;
}

std::string watch_epoch_line(const WatchedRun& run, const EpochRecord& record) {
  std::string line = run.status.epochs > 0 ? fmt::format("epoch {}/{}: ", record.epoch, run.status.epochs)
                                           : fmt::format("epoch {}: ", record.epoch);
  line += fmt::format("train loss {}, {} loss {}, {} accuracy {}", loss_text(record.train_loss),
                      validation_name(run), loss_text(record.val_loss), validation_name(run),
                      percent_text(record.val_accuracy));
  for (const NamedFigure& metric : record.metrics)
    line += fmt::format(", {} {}", metric.name, format_number(metric.value));
  if (std::isfinite(record.samples_per_second))
    line += fmt::format(", {} images/s", format_rounded(record.samples_per_second));
  return line;
}

std::string watch_end_line(const WatchedRun& run) {
  std::string line(name_of(run.phase));
  if (run.best_epoch.epoch > 0)
    line += fmt::format(": best {} accuracy {} in epoch {}", validation_name(run),
                        percent_text(run.best_epoch.val_accuracy), run.best_epoch.epoch);
  if (run.status.test_accuracy && run.status.tested_on != validation_name(run))
    line += fmt::format(", {} accuracy {}", run.status.tested_on, percent_text(*run.status.test_accuracy));
  if (const std::string end = end_text(run); !end.empty()) line += ": " + end;
  return line;
}

}  // namespace tandem
