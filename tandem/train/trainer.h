// The training loop: epochs with a judgement after each, checkpoints, a run folder, and a report at the end.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/report/training_report.h"
#include "tandem/train/options.h"
#include "tandem/train/progress.h"
#include "tandem/train/training_data.h"

namespace tandem {

// What the loop tells and asks while it runs; any of them may be empty.
struct TrainCallbacks {
  MessageFunction on_message;  // a line: what data, what device, where the run is kept
  std::function<void(const ProgressState&)> on_progress;
  std::function<void(const EpochRecord&)> on_epoch;  // when it is over and saved
  std::function<int()> stop_signal;                  // not 0: save and stop (SignalWatch)
  std::function<bool()> save_requested;              // save and go on
};

struct TrainResult {
  std::filesystem::path folder;
  int stopped_by = 0;  // the signal; the figures below the epochs are then not measured
  std::vector<EpochRecord> epochs;
  int best_epoch = 0;  // whose weights are in best.safetensors
  double test_accuracy = not_measured, test_loss = not_measured;
  std::string tested_on = "test";  // what the images of these figures are called
  double seconds = 0;              // of the whole run, before a resume too
};

// Trains as the options say and leaves the run folder: config.toml, log.csv, TensorBoard events,
// best.safetensors, last.ckpt, report.html, and bad-images.csv where photographs could not be read. The test
// accuracy is that of the best model where images were held out to find it, and of photographs; else, since
// the test set itself judged the epochs, that of the last. A run that is
// resumed gives the same bits as one never interrupted. A trace is written when the run is over or stopped by
// a signal. Throws Error; what was saved before stays good.
TrainResult train(const TrainOptions& options, const RunOptions& run = {},
                  const TrainCallbacks& callbacks = {});

}  // namespace tandem
