#include "tandem/train/fit_head.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluator.h"

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

HeadFeatures head_features(BackboneModel& model, const ImageSet& images, const ImageInput& input) {
  const std::int64_t count = images.count(), classes = std::ssize(images.classes);
  check(classes > 1, "[train] expected two classes or more for fit_head, got {}", classes);
  check_memory(count, model.feature_count());
  HeadFeatures features{.computed = compute_features(model, images.images, input),
                        .rows = {.count = count, .width = model.feature_count()},
                        .labels = images.labels.to_vector<std::int32_t>(),
                        .classes = classes};
  std::vector<float>& values = features.rows.values;
  values = features.computed.to_vector<float>();
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  check(bad == values.end(), "[train] expected finite features of the training images, got {}",
        bad == values.end() ? 0 : *bad);
  return features;
}

Evaluation fit_head(BackboneModel& model, const HeadFeatures& features, const LogisticOptions& options) {
  std::vector<std::int64_t> all(features.labels.size());
  std::iota(all.begin(), all.end(), 0);
  const Standardization standardize(features.rows, all);
  const LogisticModel fitted =
      fit_logistic(standardize(features.rows, all), features.labels, features.classes, options);
  const NoGrad no_grad;
  model.head_layer().load_state_dict(head_values(fitted, standardize));
  const Tensor outputs = model.head_layer().forward(features.computed);  // without the dropout of training
  const Tensor labels = Tensor::from(features.labels, {features.rows.count}, outputs.device());
  return to_host({.outputs = outputs,
                  .predictions = argmax(outputs, 1),
                  .loss = compute_loss(LossKind::cross_entropy, outputs, labels)},
                 features.labels);
}

Evaluation fit_head(BackboneModel& model, const ImageSet& images, const ImageInput& input,
                    const LogisticOptions& options) {
  return fit_head(model, head_features(model, images, input), options);
}

}  // namespace tandem
