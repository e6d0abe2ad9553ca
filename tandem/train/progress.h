// Progress of a run on stderr: a bar redrawn in place on a terminal, occasional plain lines in a log. Pure
// functions make the text; Progress decides when to write it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/data/synthetic/render_observer.h"
#include "tandem/text/table.h"
#include "tandem/train/progress_state.h"

namespace tandem {

// Until the end of the last epoch; NaN while no rate is known.
double seconds_left(const ProgressState& state);

// "Epoch 3/15 ━━━━━━━━━━────── 62 %  26.1k/s  loss 0.0832  0:12 left", never wider than style.width: first
// the bar shrinks, then the last parts are omitted.
std::string progress_bar_text(const ProgressState& state, const TextStyle& style);

// "Epoch 3/15: 37,200 of 60,000 samples (62 %), 26.1k samples/s, loss 0.0832, 0:12 left."
std::string progress_line_text(const ProgressState& state);

struct ProgressOutput {
  bool terminal = false;
  bool color = false;
  std::function<int()> width = [] { return 80; };  // called at every redraw, because windows are resized
  std::function<void(std::string_view)> write;
};

// The process's stderr: a bar if it is a terminal that can move its cursor, with color unless NO_COLOR is
// set.
ProgressOutput stderr_progress();

class Progress {
 public:
  explicit Progress(ProgressOutput output = stderr_progress());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call at every step. Writes at most ten times per second on a terminal and every ten seconds to a log.
  void update(const ProgressState& state);
  void update(const ProgressState& state, double now_seconds);

  // Erases the bar from the terminal, so that other lines can be printed; the next update shows it again.
  void clear();

 private:
  ProgressOutput output_;
  std::optional<double> last_write_;  // in seconds
  bool bar_visible_ = false;
};

// While it exists, `on_progress` gets the phase "Rendering" of images that this thread starts to render.
RenderObserver observe_rendering(std::function<void(const ProgressState&)> on_progress,
                                 const RenderObserver::Timing& timing = {});
RenderObserver observe_rendering(Progress& progress);

}  // namespace tandem
