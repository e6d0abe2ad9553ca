// The training loop: epochs with validation after each, checkpoints, a run folder, and a report at the end.
#pragma once

#include <functional>
#include <string>

#include "tandem/report/training_report.h"
#include "tandem/train/options.h"
#include "tandem/train/progress.h"
#include "tandem/train/train_result.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Called by the loop while it runs; any of them may be empty.
struct TrainCallbacks {
  MessageFunction on_message;                             // one line: data, device, run folder, …
  std::function<void(const ProgressState&)> on_progress;  // after every few steps
  std::function<void(const EpochRecord&)> on_epoch;       // after an epoch was validated and logged
  std::function<int()> stop_signal;                       // polled; not 0: save and stop (SignalWatch)
  std::function<bool()> save_requested;                   // polled; true: save and continue
};

// Trains and writes the run folder: config.toml, log.csv, TensorBoard events, best.safetensors, last.ckpt,
// report.html, and bad-images.csv if photographs could not be read. The test accuracy is that of the best
// model if images were held out for validation, and for photographs; otherwise the test set is also the
// validation set, and the test accuracy is that of the last epoch. A resumed run gives the same bits as one
// never interrupted. A trace is written when the run ends or is stopped by a signal. Throws Error; files
// saved before stay valid.
TrainResult train(const TrainOptions& options, const RunOptions& run = {},
                  const TrainCallbacks& callbacks = {});

}  // namespace tandem
