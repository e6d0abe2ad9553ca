// The result of a cross-validation, and that of a last layer, whose folds share one pass over the images.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/nn/loss.h"
#include "tandem/report/fold_record.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/fit_head.h"
#include "tandem/train/training_data.h"

namespace tandem {

// Every image is predicted once, by the model of its fold, which did not see it.
struct CrossValidation {
  std::vector<FoldRecord> folds;
  std::vector<std::int32_t> fold_of;               // of each image, from 0
  Evaluation evaluation;                           // of all images, in their order
  std::optional<Evaluation> fp32_evaluation = {};  // the same with features in fp32; none: not asked for
  std::vector<EpochRecord> epochs;  // validation figures after each epoch, means over the images
  double seconds = 0;               // that the folds took before the run on all images

  // Starts with the folds of the images and no predictions.
  CrossValidation(std::vector<std::int32_t> fold_of_each, std::int64_t classes);

  // The images of a fold, or all others.
  std::vector<std::int64_t> rows(int fold, bool held_out) const;
  // The evaluation with the loss and accuracy after that epoch, from 0.
  Evaluation after_epoch(std::int64_t epoch) const;
  // Adds the evaluation of a fold's images, in the order of rows(fold, true).
  const FoldRecord& add_fold(const Evaluation& evaluated, std::span<const std::int32_t> labels,
                             double elapsed_seconds);
};

using OnFold = std::function<void(const FoldRecord&)>;

// Fits a last layer per fold to the features of the other folds, as fit_head() does. `in_fp32` are features
// of the same images, which these layers classify too.
CrossValidation cross_validate_head(const HeadFeatures& features, std::vector<std::int32_t> fold_of,
                                    const LogisticOptions& options = {}, const OnFold& on_fold = {},
                                    const std::optional<HeadFeatures>& in_fp32 = {});

// CSV with the columns path,fold,truth,class,probability: one row per image, folds from 1.
std::string cross_validation_csv(const CrossValidation& result, const TrainingData& data, LossKind loss);

}  // namespace tandem
