// Where a run stands, told on stderr: a bar that redraws itself on a terminal, a plain line now and then in a
// log. What it says is made by pure functions; Progress decides when.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/report/table.h"

namespace tandem {

struct ProgressState {
  int epoch = 1, epochs = 1;                               // epoch counts from 1
  std::int64_t position = 0, total = 0;                    // samples of this epoch
  double samples_per_second = 0;                           // 0: not known yet
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN: not known yet
};

// For what is left of all epochs; NaN while no rate is known.
double seconds_left(const ProgressState& state);

// "Epoch 3/15 ━━━━━━━━━━────── 62 %  26.1k/s  loss 0.0832  0:12 left", never wider than style.width: the bar
// shrinks first, then the last parts are left out.
std::string progress_bar_text(const ProgressState& state, const TextStyle& style);

// "Epoch 3/15: 37,200 of 60,000 samples (62 %), 26.1k samples/s, loss 0.0832, 0:12 left."
std::string progress_line_text(const ProgressState& state);

struct ProgressOutput {
  bool terminal = false;
  bool colour = false;
  std::function<int()> width = [] { return 80; };  // asked for at every redraw: windows change
  std::function<void(std::string_view)> write;
};

// stderr as it is: a bar where it is a terminal that can move its cursor, colour unless NO_COLOR is set.
ProgressOutput stderr_progress();

class Progress {
 public:
  explicit Progress(ProgressOutput output = stderr_progress());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // To be called at every step: shows the state when it is time to, at most ten times a second on a terminal
  // and every ten seconds in a log.
  void update(const ProgressState& state);
  void update(const ProgressState& state, double now_seconds);

  // Takes the bar off the terminal, so that other lines can be printed; the next update draws it again.
  void clear();

 private:
  ProgressOutput output_;
  std::optional<double> last_;  // when something was shown
  bool drawn_ = false;
};

}  // namespace tandem
