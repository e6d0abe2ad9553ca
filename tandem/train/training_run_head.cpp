// The part of a training run that fits the last layer instead of making steps.
#include <cmath>
#include <span>

#include "tandem/data/loader/materialize.h"
#include "tandem/train/fit_head.h"
#include "tandem/train/ranks.h"
#include "tandem/train/training_run.h"

namespace tandem {

void TrainingRun::compute_head_features() {
  const Stopwatch watch;
  PhotoSet images{.images = data_.validation, .names = {}, .bad = {}};  // the same, in a cross-validation
  if (setup_.fold_of.empty())
    images = materialize_named(*data_.train.dataset, options_.evaluation_transform());
  data_.bad.insert(data_.bad.end(), images.bad.begin(), images.bad.end());
  const EvaluationObserver observer([&](std::int64_t done, std::int64_t count) {
    report({.phase = "Features", .position = done, .total = count});
  });
  head_features_ = head_features(dynamic_cast<BackboneModel&>(model_), images.images, setup_.input);
  head_seconds_ = watch.elapsed_ms() / 1000;
}

// Of the classes, for the fit of the last layer, which uses every image once: balanced sampling is a weight.
std::vector<double> TrainingRun::head_weights() const {
  if (!options_.balanced_sampling) return class_weights_;
  std::vector<double> weights =
      ClassWeights{.balanced = true}.values(data_.train.classes, count_classes(*data_.train.dataset));
  for (std::size_t i = 0; i < class_weights_.size(); ++i) weights[i] *= class_weights_[i];
  return weights;
}

// The first rank fits the last layer for all, who then hold the same bits.
void TrainingRun::run_head_epoch() {
  Stopwatch watch;
  StepSums& sums = position_.sums;
  if (is_first()) {
    const Evaluation fitted = traced_evaluation([&] {
      if (!head_features_) compute_head_features();
      watch = {};
      return fit_head(dynamic_cast<BackboneModel&>(model_), *head_features_,
                      {.class_weights = head_weights()});
    });
    const std::int64_t count = head_features_->rows.count;
    head_features_.reset();
    sums = {.loss = fitted.loss * static_cast<double>(count),
            .correct = std::llround(fitted.accuracy * static_cast<double>(count)),
            .samples = count};
  }
  group_.broadcast(std::as_writable_bytes(std::span(&sums, 1)), 0);
  broadcast_weights(group_, model_);
  if (state_->task().average) state_->task().average->restart();
  if (state_->task().lookahead) state_->task().lookahead->restart();
  position_.epoch_seconds = head_seconds_ + watch.elapsed_ms() / 1000;
}

// All folds from one pass over the images.
void TrainingRun::cross_validate_head() {
  compute_head_features();
  std::optional<HeadFeatures> in_fp32;
  if (low_precision_) {  // the last layers get no others
    low_precision_.reset();
    const EvaluationObserver observer([&](std::int64_t done, std::int64_t count) {
      report({.phase = "Features in fp32", .position = done, .total = count});
    });
    in_fp32 = head_features(dynamic_cast<BackboneModel&>(model_), data_.validation, setup_.input);
  }
  setup_.cross_validation =
      tandem::cross_validate_head(*head_features_, setup_.fold_of, {.class_weights = head_weights()},
                                  is_first() ? callbacks_.on_fold : OnFold(), in_fp32);
}

}  // namespace tandem
