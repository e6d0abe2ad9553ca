// What a run writes for people and their tools: log.csv, steps.csv, status.json, TensorBoard events,
// bad-images.csv, report.html and report.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/report/step_record.h"
#include "tandem/report/training_report.h"
#include "tandem/train/event_file.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/run_status.h"

namespace tandem {

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

  // With the curves of the steps, and the options, the first training images and the timeline of the folder.
  void write_report(TrainingReport report) const;

 private:
  RunFolder folder_;
  std::string validated_on_;
  bool has_shards_;
  EventFile events_, step_events_;
  StepCurves step_curves_;
  std::string bad_images_text_;  // last written content of bad-images.csv
};

}  // namespace tandem
