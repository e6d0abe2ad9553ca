// The view of `tandem watch` as a pure function: what is known about runs and the size of a terminal become
// lines of text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/text/styled_line.h"
#include "tandem/train/watch/run_reader.h"

namespace tandem {

struct WatchView {
  int width = 80, height = 24;
  TerminalStyle style;
  std::size_t selected = 0;  // the run whose curves are shown
  bool by_epoch = false;     // curves by epoch, else by step
  bool log_axis = false;     // of the loss
  int zoom = 0;              // shows the last 1 / 2^zoom of the curves
  bool overlay = false;      // curves of several runs in one plot
  bool help = false;         // keys in place of curves
  double now = 0;            // in seconds since 1970
};

inline constexpr int max_zoom = 8;

// Exactly `height` lines of at most `width` columns.
std::vector<std::string> watch_frame(std::span<const WatchedRun* const> runs, const WatchView& view);

// "epoch 3/15: train loss 0.0832, validation loss 0.0911, validation accuracy 97.62 %, 26,100 images/s", for
// output that is not a terminal.
std::string watch_epoch_line(const WatchedRun& run, const EpochRecord& record);
// "finished: best validation accuracy 97.62 % in epoch 3".
std::string watch_end_line(const WatchedRun& run);

}  // namespace tandem
