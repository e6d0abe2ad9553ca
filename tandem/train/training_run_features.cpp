// The part of a training run that computes the features of a frozen backbone in low precision.
#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/nn/resnet.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/option_facts.h"
#include "tandem/train/spaced_images.h"
#include "tandem/train/training_run.h"

namespace tandem {

// Trains on the CPU then.
void TrainingRun::check_feature_precision() {
  if (options_.feature_precision == FeaturePrecision::automatic) return;
  auto* const backbone = dynamic_cast<BackboneModel*>(&model_);
  const bool is_frozen = backbone && (backbone->is_backbone_frozen() || !options_.has_steps());
  check(is_frozen, "[train] feature_precision requires freeze: it is for layers that are not trained");
  check(options_.feature_precision != FeaturePrecision::int8 || dynamic_cast<ResNet*>(&model_) != nullptr,
        "[train] feature_precision int8 requires a ResNet (resnet18, resnet34, resnet50), got {}",
        options_.model_name);
  options_.device = cpu_device;
}

// After the weights were loaded, also of a run that is resumed: they give the same ranges.
void TrainingRun::compute_features_in_low_precision() {
  if (options_.feature_precision == FeaturePrecision::automatic) return;
  constexpr std::int64_t calibration_images = 64;
  Tensor images;
  if (options_.feature_precision == FeaturePrecision::int8) {
    images = spaced_images(data_.train, options_.evaluation_transform(), calibration_images);
    check(images.size(0) > 0, "[train] expected training images that can be read, got none");
  }
  low_precision_.emplace(dynamic_cast<BackboneModel&>(model_), options_.feature_precision, images,
                         setup_.input);
  const Fact fact{"features", low_precision_->description()};
  log(fact_lines({fact}).front());
  setup_.facts.push_back(fact);
}

// Of the kept model on the test images, which ends the low precision.
Evaluation TrainingRun::evaluate_in_fp32() {
  low_precision_.reset();  // a cross-validation has done so before
  if (setup_.cross_validation) return setup_.cross_validation->fp32_evaluation.value();
  return evaluate_test_images();
}

// Adds the accuracy of the same model with features in fp32.
void TrainingRun::compare_with_fp32(TrainResult& result, const Evaluation& tested) {
  Evaluation exact = evaluate_in_fp32();
  if (options_.calibrate || !options_.threshold.empty())
    exact =
        apply_decision(exact, data_.test.labels.to_vector<std::int32_t>(), setup_.decision, options_.loss);
  std::int64_t same = 0;
  for (std::size_t i = 0; i < tested.predictions.size(); ++i)
    same += tested.predictions[i] == exact.predictions[i] ? 1 : 0;
  result.fp32_accuracy = exact.accuracy;
  result.same_class = tested.predictions.empty()
                          ? not_measured
                          : static_cast<double>(same) / static_cast<double>(tested.predictions.size());
}

}  // namespace tandem
