#include "tandem/train/fit_head.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/logistic_regression.h"

namespace tandem {
namespace {

// In f32, standardized in f64, and again with a column of ones while they are fitted.
void check_memory(std::int64_t images, std::int64_t features) {
  constexpr std::int64_t bytes_per_value = 4 + 8 + 8;
  const std::int64_t most = free_host_bytes() / 2 / (bytes_per_value * features);
  check(
      images <= most,
      "[train] expected at most {} training images for fit_head, as many as have features that fit into half "
      "of the free memory, got {}",
      most, images);
}

// The weights and biases for features that are not standardized.
NamedTensors head_values(const LogisticModel& model, const Standardization& standardize) {
  const auto features = static_cast<std::int64_t>(standardize.mean().size());
  std::vector<float> weight, bias;
  for (std::int64_t c = 0; c < model.classes; ++c) {
    const double* const row = model.weights.data() + c * (features + 1);
    double constant = row[features];
    for (std::int64_t i = 0; i < features; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double factor = row[i] * standardize.scale()[at];
      weight.push_back(static_cast<float>(factor));
      constant -= factor * standardize.mean()[at];
    }
    bias.push_back(static_cast<float>(constant));
  }
  return {{"weight", Tensor::from(weight, {model.classes, features})},
          {"bias", Tensor::from(bias, {model.classes})}};
}

}  // namespace

Evaluation fit_head(BackboneModel& model, const ImageSet& images, const ImageInput& input) {
  const std::int64_t count = images.count(), classes = std::ssize(images.classes);
  check(classes > 1, "[train] expected two classes or more for fit_head, got {}", classes);
  check_memory(count, model.feature_count());
  const NoGrad no_grad;
  const Tensor computed = compute_features(model, images.images, input);
  const Features features{
      .count = count, .width = model.feature_count(), .values = computed.to_vector<float>()};
  const auto bad = std::ranges::find_if(features.values, [](float value) { return !std::isfinite(value); });
  check(bad == features.values.end(), "[train] expected finite features of the training images, got {}",
        bad == features.values.end() ? 0 : *bad);
  const std::vector<std::int32_t> labels = images.labels.to_vector<std::int32_t>();
  std::vector<std::int64_t> all(labels.size());
  std::iota(all.begin(), all.end(), 0);
  const Standardization standardize(features, all);
  const LogisticModel fitted = fit_logistic(standardize(features, all), labels, classes);
  model.head_layer().load_state_dict(head_values(fitted, standardize));
  const Tensor outputs = model.head_layer().forward(computed);  // without the dropout of training
  return to_host({.outputs = outputs,
                  .predictions = argmax(outputs, 1),
                  .loss = compute_loss(LossKind::cross_entropy, outputs, images.labels.to(outputs.device()))},
                 labels);
}

}  // namespace tandem
