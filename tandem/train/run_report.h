// Builds the report of a run, finished or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/dist/place.h"
#include "tandem/report/calibration.h"
#include "tandem/report/training_report.h"
#include "tandem/tensor/named_tensor.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/run_report_images.h"
#include "tandem/train/train_result.h"
#include "tandem/train/training_state.h"

namespace tandem {

struct ReportedRun {
  const FitOptions& options;
  const TrainingData& data;
  const Architecture& architecture;
  const std::vector<Fact>& facts;  // added at the end
  const TrainResult& result;
  const Evaluation* tested;  // of the kept model on the test images; null: not finished
  std::string engine;
  std::string augmentation;  // BatchSource::description()
  NamedTensors parameters;
  TestedModel model = {};
  std::vector<Place> ranks = {};  // empty or one: this process alone
  std::optional<RangeTest> range_test = {};
  std::optional<Calibration> calibration = {};
};

TrainingReport run_report(const ReportedRun& run);

}  // namespace tandem
