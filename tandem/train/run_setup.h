// A run with everything resolved but the device, and what its files say about it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/data/loader/timeline.h"
#include "tandem/dist/group.h"
#include "tandem/report/fact.h"
#include "tandem/train/cross_validation.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/fit_options.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Made by train() from the command's options, by fit() from the caller's objects.
struct RunSetup {
  FitOptions options;
  TrainingData data;
  Architecture architecture;  // stored in the model file
  ImageInput input;
  std::vector<Fact> facts;  // about the initial weights and the steps, for the report
  // The configuration of the run, saved with it, given the options as chosen.
  std::function<TomlTable(const FitOptions&)> config;
  Group* group = nullptr;  // the ranks of the run; null: this process alone
  // A cross-validation: its result, or the fold of every training image, from 0, of one that fits the last
  // layer. The training images are then the validation and test images too.
  std::optional<CrossValidation> cross_validation = {};
  std::vector<std::int32_t> fold_of = {};
  Decision decision = {};              // of the kept model, when it was fitted
  std::unique_ptr<Timeline> timeline;  // null: no trace
};

// Starts the timeline of a run with options.trace; else null. All ranks have one, and the first checks that
// the file can be written.
std::unique_ptr<Timeline> start_timeline(const FitOptions& options, const Place& place = {});

// Throws Error for a threshold without two classes, and for one that is chosen without validation images of
// both.
void check_threshold(const ThresholdRequest& threshold, const TrainingData& data);

// The epoch that `position` has finished, and its validation.
EpochRecord epoch_record(const RunSetup& setup, const RunPosition& position, const Evaluation& validated,
                         double learning_rate);

// What the model file of that epoch says.
ModelInfo model_info(const RunSetup& setup, const EpochRecord& record);

// The files of photographs that were not read, in training or before, by name.
std::vector<SkippedSample> files_not_read(const TrainingData& data, const BatchSource& source);

}  // namespace tandem
