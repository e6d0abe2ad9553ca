// What two sets of learning curves say, with and without augmentation: rows, sentences and plots. From the
// curves alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/optim/schedule.h"
#include "tandem/report/plot.h"
#include "tandem/report/study_report.h"
#include "tandem/study/measure.h"

namespace tandem {

struct AugmentCase {
  std::int64_t images = 0, epochs = 0, seeds = 0;
  ScheduleKind schedule = ScheduleKind::constant;

  std::string setting() const;  // "1,000 images" or "1,000 images, falling rate"
  std::string name() const;     // "1,000 images, 5 seeds"
};

struct AugmentResult {
  using Curve = std::vector<double>;  // accuracy after each epoch

  AugmentCase augment_case;
  std::string device, engine;
  std::vector<Curve> plain, augmented;  // one a seed
  Timing plain_epoch, augmented_epoch;
};

// Plain and augmented after each epoch; of many epochs the table shows some.
std::vector<StudyRow> augment_rows(const AugmentResult& result);

std::string augment_finding(const AugmentResult& result);

Plot augment_plot(const AugmentResult& result);

}  // namespace tandem
