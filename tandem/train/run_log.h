// What a run writes for people and their tools: log.csv, TensorBoard events, bad-images.csv and report.html.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"
#include "tandem/report/training_report.h"
#include "tandem/train/event_file.h"
#include "tandem/train/run_folder.h"

namespace tandem {

class RunLog {
 public:
  // Starts with the epochs finished before; events of later epochs, which a resumed run repeats, are dropped.
  // `validated_on` is the name of the validation set, `metrics` those of the caller's own figures.
  RunLog(const RunFolder& folder, std::string validated_on, const std::vector<std::string>& metrics,
         std::span<const EpochRecord> finished);

  void add_epoch(const EpochRecord& record);

  // Writes the unreadable samples found so far, sorted by path. Returns their number.
  std::int64_t write_bad_images(std::span<const SkippedSample> bad);

  void write_report(const TrainingReport& report) const;

 private:
  RunFolder folder_;
  std::string validated_on_;
  EventFile events_;
  std::string bad_images_text_;  // last written content of bad-images.csv
};

}  // namespace tandem
