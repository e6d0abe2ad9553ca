#include "tandem/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/softmax.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

// Enough to keep any device busy, few enough to fit anywhere.
std::int64_t batch_for(const ImageInput& input) {
  constexpr std::int64_t most = 2048, most_pixels = 128 * 224 * 224;
  if (input.flat) return most;
  return std::clamp<std::int64_t>(most_pixels / (input.height * input.width), 1, most);
}

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool training_;
};

}  // namespace

Tensor outputs_of(Module& model, const Tensor& images, const ImageInput& input) {
  const NoGrad no_grad;
  const EvaluationMode mode(model);
  const Device device = model.parameters().front().tensor.device();
  const std::int64_t count = images.size(0);
  expect(count > 0);
  const std::int64_t batch = batch_for(input);
  std::vector<Tensor> parts;
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    const Tensor part = images.slice(0, begin, std::min(begin + batch, count)).to(device);
    parts.push_back(model.forward(network_input(part, input)));
  }
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (set.count() == 0) return {.loss = nan, .accuracy = nan};
  const NoGrad no_grad;
  const Tensor outputs = outputs_of(model, set.images, input);
  const Tensor labels = set.labels.to(outputs.device());
  Evaluation evaluation{.loss = compute_loss(loss, outputs, labels).item<float>(),
                        .classes = outputs.size(1),
                        .outputs = outputs.to_vector<float>()};
  for (const std::int64_t prediction : argmax(outputs, 1).to_vector<std::int64_t>())
    evaluation.predictions.push_back(static_cast<std::int32_t>(prediction));
  evaluation.accuracy = accuracy(set.labels.to_vector<std::int32_t>(), evaluation.predictions);
  return evaluation;
}

std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss) {
  if (outputs.empty()) return {};
  const Tensor rows = Tensor::from(outputs, {static_cast<std::int64_t>(outputs.size()) / classes, classes});
  return (loss == LossKind::cross_entropy ? softmax(rows) : divide(rows, sum(rows, {1}, {.keep_axes = true})))
      .to_vector<float>();
}

}  // namespace tandem
