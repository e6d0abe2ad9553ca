// The result of a training run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/report/epoch_record.h"
#include "tandem/report/fold_record.h"
#include "tandem/train/decision.h"

namespace tandem {

/// What train() returns. Figures that were not measured are NaN (`not_measured`).
struct TrainResult {
  std::filesystem::path folder;  ///< the run folder
  int stopped_by = 0;  ///< the signal that stopped the run early, or 0; if not 0, nothing was tested
  std::vector<EpochRecord> epochs;  ///< one record per finished epoch
  int best_epoch = 0;               ///< from 1: the epoch whose weights are kept in best.safetensors; 0: none
  double test_accuracy = not_measured;  ///< from 0 to 1
  double test_loss = not_measured;      ///< mean over the test images
  /// With FitOptions::feature_precision: test_accuracy of the same model with features in fp32, and the share
  /// of the test images for which both give the same class.
  double fp32_accuracy = not_measured, same_class = not_measured;
  /// Of a cross-validation: the test figures are those of its predictions; empty: there was none.
  std::vector<FoldRecord> folds = {};
  Decision decision = {};       ///< the kept model's temperature and threshold
  std::int64_t test_count = 0;  ///< number of test images
  /// What chose the model of best_epoch: "validation", or empty if the last one was kept.
  std::string chosen_on = "validation";
  std::vector<std::string> warnings;  ///< what to know before believing the figures
  std::string tested_on = "test";     ///< name of the set that the test figures were measured on
  double seconds = 0;                 ///< duration of the whole run, including the time before a resume
};

}  // namespace tandem
