// Rows, findings and plots from the learning curves with and without augmentation.
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
  std::int64_t images = 0;
  std::int64_t epochs = 0;
  std::int64_t seeds = 0;
  ScheduleKind schedule = ScheduleKind::constant;

  std::string setting() const;  // "1,000 images" or "1,000 images, decaying rate"
  std::string name() const;     // "1,000 images, 5 seeds"
};

struct AugmentResult {
  using Curve = std::vector<double>;  // accuracy after each epoch

  AugmentCase augment_case;
  std::string device;
  std::string engine;
  std::vector<Curve> plain;  // one per seed
  std::vector<Curve> augmented;
  Timing plain_epoch;
  Timing augmented_epoch;
};

// One row per epoch, with the accuracies of plain and augmented and the lead.
std::vector<StudyRow> augment_rows(const AugmentResult& result);

std::string augment_finding(const AugmentResult& result);

Plot augment_plot(const AugmentResult& result);

}  // namespace tandem
