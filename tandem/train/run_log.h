// What a run writes for people and their tools: log.csv, steps.csv, status.json, TensorBoard events,
// bad-images.csv, report.html and report.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/report/training_report.h"
#include "tandem/train/event_file.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/run_status.h"

namespace tandem {

// The steps that ran in about a second.
struct StepRecord {
  std::int64_t step = 0;  // the last of them, counted from 1 over all epochs
  int epoch = 0;          // from 1
  double loss = 0;        // mean over their samples
  double learning_rate = 0;
  double samples_per_second = 0;
  double waited_share = 0;                 // of their time, waiting for images
  double memory_mb = not_measured;         // resident memory of the process
  double device_memory_mb = not_measured;  // that the process has taken on its GPU
};

class RunLog {
 public:
  // Starts with the epochs and the steps finished before; later ones, which a resumed run repeats, are
  // dropped. `validated_on` is the name of the validation set, `metrics` those of the caller's own figures.
  // With shards the log has the time of the exchange between ranks, also if there is only one.
  RunLog(const RunFolder& folder, std::string validated_on, const std::vector<std::string>& metrics,
         bool has_shards, std::span<const EpochRecord> finished, std::int64_t finished_steps);

  void add_epoch(const EpochRecord& record);
  void add_steps(const StepRecord& record);

  // Writes the list of files that were not read, unless it is the one written before. Returns whether it was.
  bool write_bad_images(std::span<const SkippedSample> bad);

  void write_status(const RunStatus& status) const;

  void write_report(const TrainingReport& report) const;

 private:
  RunFolder folder_;
  std::string validated_on_;
  bool has_shards_;
  EventFile events_, step_events_;
  std::string bad_images_text_;  // last written content of bad-images.csv
};

}  // namespace tandem
